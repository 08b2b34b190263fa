//! User objects: what a graph keeps alive, with the function that ends it.

use std::collections::HashMap;

use super::border::{Host, HostCall, HostFn, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::{Call, Driver};

/// A user object.
#[derive(Debug)]
pub(crate) struct UserObject {
    destroy: HostCall,
    references: u32,
}

impl Driver {
    fn object(&mut self, handle: usize) -> Answer<&mut UserObject> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.user_objects
            .get_mut(&handle)
            .ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn retain_object(&mut self, handle: usize, count: u32) {
        if let Some(object) = self.user_objects.get_mut(&handle) {
            object.references = object.references.saturating_add(count);
        }
    }
}

impl Call {
    fn release_object(&mut self, handle: usize, count: u32) -> Answer {
        let object = self.object(handle)?;
        object.references = object
            .references
            .checked_sub(count)
            .ok_or(Code::INVALID_VALUE)?;
        if object.references == 0 {
            let destroy = object.destroy;
            self.user_objects.remove(&handle);
            self.outside(|| destroy.run());
        }
        Ok(())
    }

    pub(crate) fn release_objects(&mut self, objects: HashMap<usize, u32>) {
        for (object, count) in objects {
            let _ = self.release_object(object, count);
        }
    }
}

const NO_DESTRUCTOR_SYNC: u32 = 1;
const MOVE: u32 = 1;

driver_api! {
    fn cuUserObjectCreate(call, object: Out<usize>, data: Host, destroy: HostFn, references: u32, flags: u32) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        object.check()?;
        // The driver demands the flag: nobody can wait for the function to be called.
        if references == 0 || flags != NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        let destroy = HostCall::function(destroy, data)?;
        let handle = call.new_handle();
        call.user_objects.insert(handle, UserObject { destroy, references });
        object.set(handle)
    }

    fn cuUserObjectRetain(call, object: usize, count: u32) {
        if count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.object(object)?;
        call.retain_object(object, count);
        Ok(())
    }

    fn cuUserObjectRelease(call, object: usize, count: u32) {
        if count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.release_object(object, count)
    }

    fn cuGraphRetainUserObject(call, graph: usize, object: usize, count: u32, flags: u32) {
        call.graph(graph)?;
        call.object(object)?;
        if count == 0 || flags & !MOVE != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & MOVE == 0 {
            call.retain_object(object, count);
        }
        if let Some(graph) = call.graphs.get_mut(&graph) {
            *graph.objects.entry(object).or_default() += count;
        }
        Ok(())
    }

    fn cuGraphReleaseUserObject(call, graph: usize, object: usize, count: u32) {
        let kept = call.graph(graph)?.objects.get(&object).copied().unwrap_or(0);
        let left = kept.checked_sub(count).filter(|_| count > 0).ok_or(Code::INVALID_VALUE)?;
        if let Some(graph) = call.graphs.get_mut(&graph) {
            if left == 0 {
                graph.objects.remove(&object);
            } else {
                graph.objects.insert(object, left);
            }
        }
        call.release_object(object, count)
    }
}
