//! Linking, of a single PTX text: what comes out is the text, which loads like any other.

use super::Driver;
use super::border::{Host, In, Out, Text};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::module::read_file;
use crate::exec::Program;
use crate::report::ReportKind;

/// A link under way.
#[derive(Debug)]
pub(crate) struct Link {
    device: u32,
    /// The text with a zero byte behind it.
    image: Option<Box<[u8]>>,
}

const CUBIN: u32 = 0;
const PTX: u32 = 1;

impl Driver {
    fn link(&mut self, handle: usize) -> Answer<&mut Link> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.links.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    fn add_to_link(&mut self, handle: usize, kind: u32, mut text: Vec<u8>) -> Answer {
        let link = self.link(handle)?;
        let (device, first) = (link.device, link.image.is_none());
        match kind {
            PTX => {}
            CUBIN => return Err(Code::NO_BINARY_FOR_GPU),
            _ => return Err(Code::NOT_SUPPORTED),
        }
        if !first {
            let message = "a link of several PTX texts is not supported by the emulator: link them with nvlink or \
                           compile them as one";
            return Err(self.refuse(
                ReportKind::InvalidImage,
                device,
                Code::NOT_SUPPORTED,
                message,
            ));
        }
        while text.last() == Some(&0) {
            text.pop();
        }
        let source = std::str::from_utf8(&text).map_err(|_| Code::INVALID_IMAGE)?;
        if let Err(error) = Program::lower(source) {
            let code = if error.not_ptx {
                Code::INVALID_IMAGE
            } else {
                Code::INVALID_PTX
            };
            let message = format!("PTX given to a link is refused: {error}");
            return Err(self.refuse(ReportKind::InvalidImage, device, code, message));
        }
        text.push(0);
        self.link(handle)?.image = Some(text.into());
        Ok(())
    }
}

driver_api! {
    fn cuLinkCreate_v2(call, _count: u32, _options: In<u32>, _values: Out<usize>, state: Out<usize>) {
        let context = call.context()?;
        let device = call.get_context(context)?.device;
        state.check()?;
        let handle = call.new_handle();
        call.links.insert(handle, Link { device, image: None });
        state.set(handle)
    }

    fn cuLinkAddData_v2(
        call, state: usize, kind: u32, data: Host, size: usize, _name: Text, _count: u32, _options: In<u32>,
        _values: Out<usize>
    ) {
        if data.is_null() || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let text = data.read(size);
        call.add_to_link(state, kind, text)
    }

    fn cuLinkAddFile_v2(call, state: usize, kind: u32, path: Text, _count: u32, _options: In<u32>, _values: Out<usize>) {
        let text = read_file(path)?;
        call.add_to_link(state, kind, text)
    }

    fn cuLinkComplete(call, state: usize, image: Out<usize>, size: Out<usize>) {
        let link = call.link(state)?;
        let Some(bytes) = &link.image else {
            return Err(Code::INVALID_IMAGE);
        };
        // The image lives as long as the link, as the driver promises.
        image.set(bytes.as_ptr().expose_provenance())?;
        size.set_if_wanted(bytes.len());
        Ok(())
    }

    fn cuLinkDestroy(call, state: usize) {
        call.link(state)?;
        call.links.remove(&state);
        Ok(())
    }
}
