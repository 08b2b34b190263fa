//! The arrays of cudarc 0.19.
//!
//! cudarc lends a pointer only together with the waits that its event tracking asks for
//! (`DevicePtr::device_ptr`). Describing must enqueue nothing, so the pointer is asked for a
//! [probe] stream there, and for the launching stream when the array is acquired.
//!
//! Each array carries one event for its last read and one for its last write, which cudarc records
//! over at each use. Before a use is recorded over, the launching stream is made to wait for the one
//! before: otherwise two readers on two streams and a drop free the array under the first. Both are
//! done under a lock, as several threads may use an array, or its parts, at once.

mod probe;

use std::{
    ffi::c_void,
    mem,
    sync::{Arc, Mutex},
};

use cudarc_019::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DriverError, SyncOnDrop, UnifiedSlice, UnifiedView, UnifiedViewMut,
};

use crate::{
    AsDeviceView, AsDeviceViewMut, Guard, Place, StreamRef, View, ViewError, tracking::Tracking,
};

impl<'a> From<&'a CudaStream> for StreamRef<'a> {
    #[inline(always)]
    fn from(stream: &'a CudaStream) -> StreamRef<'a> {
        let context = stream.context();
        // SAFETY: a `CudaStream` holds its stream and context, and is borrowed for 'a.
        let by_handle = unsafe {
            StreamRef::from_raw(stream.cu_stream().cast(), handle(context), ordinal(context))
        };
        // SAFETY: it is the very stream whose handles were taken.
        unsafe { by_handle.with_native(stream) }.tracked_by(tracker(context))
    }
}

// SAFETY: a `CudaSlice` owns `len` elements until it is dropped. `acquire` waits for its last
// write and the guard records the read, as cudarc's own launches do where its contexts track
// events; where they do not, one stream is in use, or the user took over by an unsafe call.
unsafe impl<T> AsDeviceView<T> for CudaSlice<T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, orders))
    }

    #[inline(always)]
    fn describe_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, |context| !is_quiet(tracking, context)))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_tracked(self, stream)
    }
}

// SAFETY: as for reading; `acquire_mut` waits for the last reads and the last write.
unsafe impl<T> AsDeviceViewMut<T> for CudaSlice<T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, orders))
    }

    #[inline(always)]
    fn describe_mut_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, |context| !is_quiet(tracking, context)))
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        write_tracked(self, stream)
    }
}

// SAFETY: a `CudaView` borrows a part of a `CudaSlice` and carries its events.
unsafe impl<T> AsDeviceView<T> for CudaView<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, orders))
    }

    #[inline(always)]
    fn describe_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, |context| !is_quiet(tracking, context)))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_tracked(self, stream)
    }
}

// SAFETY: a `CudaViewMut` exclusively borrows a part of a `CudaSlice` and carries its events.
unsafe impl<T> AsDeviceView<T> for CudaViewMut<'_, T> {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, orders))
    }

    #[inline(always)]
    fn describe_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, |context| !is_quiet(tracking, context)))
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_tracked(self, stream)
    }
}

// SAFETY: a `CudaViewMut` exclusively borrows a part of a `CudaSlice` and carries its events.
unsafe impl<T> AsDeviceViewMut<T> for CudaViewMut<'_, T> {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, orders))
    }

    #[inline(always)]
    fn describe_mut_tracked(&self, tracking: &Tracking<'_>) -> Result<View<'_>, ViewError> {
        Ok(tracked_view(self, |context| !is_quiet(tracking, context)))
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        write_tracked(self, stream)
    }
}

// SAFETY: a `UnifiedSlice` owns `len` elements until it is dropped, which waits for its one
// event; the guard records that event whatever the number of streams.
unsafe impl<T> AsDeviceView<T> for UnifiedSlice<T> {
    #[inline]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(unified_view(self))
    }

    #[inline]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_unified(self, stream)
    }
}

// SAFETY: as for reading; the one event orders reads and writes alike.
unsafe impl<T> AsDeviceViewMut<T> for UnifiedSlice<T> {
    #[inline]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(unified_view(self))
    }

    #[inline]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_unified(self, stream)
    }
}

// SAFETY: a `UnifiedView` borrows a part of a `UnifiedSlice` and carries its event.
unsafe impl<T> AsDeviceView<T> for UnifiedView<'_, T> {
    #[inline]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(unified_view(self))
    }

    #[inline]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_unified(self, stream)
    }
}

// SAFETY: a `UnifiedViewMut` exclusively borrows a part of a `UnifiedSlice` and its event.
unsafe impl<T> AsDeviceView<T> for UnifiedViewMut<'_, T> {
    #[inline]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(unified_view(self))
    }

    #[inline]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_unified(self, stream)
    }
}

// SAFETY: a `UnifiedViewMut` exclusively borrows a part of a `UnifiedSlice` and its event.
unsafe impl<T> AsDeviceViewMut<T> for UnifiedViewMut<'_, T> {
    #[inline]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Ok(unified_view(self))
    }

    #[inline]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        read_unified(self, stream)
    }
}

/// The view of an array that one context owns and whose uses events track; which `orders` says, where
/// the context may do so now.
#[inline(always)]
fn tracked_view<T, A: DevicePtr<T>>(
    array: &A,
    orders: impl FnOnce(&Arc<CudaContext>) -> bool,
) -> View<'_> {
    let stream = array.stream();
    let context = stream.context();
    // Taken before the call, which may change anything as far as the compiler knows.
    let tracker = tracker(context);
    let pointer = if orders(context) {
        probe::pointer(array)
    } else {
        // With one stream in use nothing is waited for, and what would be recorded is not.
        let (pointer, record) = array.device_ptr(stream);
        mem::forget(record);
        pointer
    };
    let place = Place::Context {
        context: handle(context),
        device: ordinal(context),
    };
    View::new(pointer, array.len(), place)
        .exclusive()
        .tracked_by(tracker)
}

#[inline(always)]
fn read_tracked<'a, T, A: DevicePtr<T>>(
    array: &'a A,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    if stream.is_alone() {
        return Ok(Guard::none());
    }
    let Some(native) = stream.native::<CudaStream>() else {
        return read_foreign(array, stream);
    };
    if !shares_context(array.stream(), native) {
        return read_across(array, native);
    }
    if !tracks(native) {
        // Another thread may make the second stream before the use is recorded.
        return Ok(Guard::new(move || {
            if tracks(native) {
                read_late(array, native)
            } else {
                Ok(())
            }
        }));
    }
    let record = wait(native, || array.device_ptr(native).1)?;
    Ok(Guard::new(move || record_after(record)))
}

#[inline(always)]
fn write_tracked<'a, T, A: DevicePtrMut<T> + DevicePtr<T>>(
    array: &'a mut A,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    if stream.is_alone() {
        return Ok(Guard::none());
    }
    let Some(native) = stream.native::<CudaStream>() else {
        return write_foreign(array, stream);
    };
    if !shares_context(array.stream(), native) {
        return write_across(array, native);
    }
    if !tracks(native) {
        // Another thread may make the second stream before the use is recorded.
        return Ok(Guard::new(move || {
            if tracks(native) {
                write_late(array, native)
            } else {
                Ok(())
            }
        }));
    }
    let record = wait(native, || array.device_ptr_mut(native).1)?;
    Ok(Guard::new(move || record_after(record)))
}

/// Whether both streams belong to one context object. cudarc counts streams, and so decides
/// whether to track, for each object; two objects may stand for one context.
#[inline(always)]
fn shares_context(owner: &CudaStream, stream: &CudaStream) -> bool {
    Arc::ptr_eq(owner.context(), stream.context())
}

/// Whether cudarc waits for, and records, uses on this stream.
#[inline(always)]
fn tracks(stream: &CudaStream) -> bool {
    orders(stream.context())
}

/// Whether a launch is on a stream of this context object, and it orders nothing.
#[inline(always)]
fn is_quiet(tracking: &Tracking<'_>, context: &Arc<CudaContext>) -> bool {
    tracking.is_quiet(tracker(context), || {
        let native = tracking.stream().native::<CudaStream>();
        native.is_none_or(tracks)
    })
}

#[inline(always)]
fn orders(context: &Arc<CudaContext>) -> bool {
    context.is_managing_stream_synchronization()
}

/// Lets `enqueue` make the stream wait, which reports failure only to the stream's context, and
/// fetches that report.
#[inline(always)]
fn wait<'a>(
    stream: &CudaStream,
    enqueue: impl FnOnce() -> SyncOnDrop<'a>,
) -> Result<SyncOnDrop<'a>, ViewError> {
    let record = enqueue();
    match stream.context().check_err() {
        Ok(()) => Ok(record),
        Err(error) => {
            // Nothing will be launched, so there is no use to record.
            mem::forget(record);
            Err(ViewError::driver("waiting for the array", error))
        }
    }
}

#[cold]
#[inline(never)]
fn read_late<T, A: DevicePtr<T>>(array: &A, stream: &CudaStream) -> Result<(), ViewError> {
    record_after(wait(stream, || array.device_ptr(stream).1)?)
}

#[cold]
#[inline(never)]
fn write_late<T, A: DevicePtrMut<T>>(array: &mut A, stream: &CudaStream) -> Result<(), ViewError> {
    record_after(wait(stream, || array.device_ptr_mut(stream).1)?)
}

/// Reading on a stream of another context object, which may not know of the array's last uses nor
/// the array's of this one: the array's own stream is joined before and after.
#[cold]
fn read_across<'a, T, A: DevicePtr<T>>(
    array: &'a A,
    stream: &'a CudaStream,
) -> Result<Guard<'a>, ViewError> {
    join(stream, array.stream())?;
    let record = wait(stream, || array.device_ptr(stream).1)?;
    let owner = array.stream();
    Ok(Guard::new(move || {
        record_after(record).and_then(|()| join(owner, stream))
    }))
}

#[cold]
fn write_across<'a, T, A: DevicePtrMut<T>>(
    array: &'a mut A,
    stream: &'a CudaStream,
) -> Result<Guard<'a>, ViewError> {
    join(stream, array.stream())?;
    let owner = array.stream().clone();
    let record = wait(stream, || array.device_ptr_mut(stream).1)?;
    Ok(Guard::new(move || {
        record_after(record).and_then(|()| join(&owner, stream))
    }))
}

/// Makes `stream` wait for all that is enqueued on `other`.
fn join(stream: &CudaStream, other: &CudaStream) -> Result<(), ViewError> {
    stream
        .join(other)
        .map_err(|error| ViewError::driver("joining the array's stream", error))
}

/// Records a use of an array, after those that its event stands for now: the stream waits for them,
/// so that whoever waits for the event later waits for all. Others may have used the array since it
/// was acquired: readers, and writers of other parts.
#[inline(never)]
fn record_after(record: SyncOnDrop<'_>) -> Result<(), ViewError> {
    let recorded: Result<(), DriverError> = match &record {
        SyncOnDrop::Record(Some((event, stream))) => {
            // Two threads that both waited before either recorded would lose one use.
            let _one_at_a_time = recording(event).lock();
            stream.wait(event).and_then(|()| event.record(stream))
        }
        SyncOnDrop::Sync(Some(stream)) => stream.synchronize(),
        SyncOnDrop::Record(None) | SyncOnDrop::Sync(None) => Ok(()),
    };
    // Its drop would record once more, and report only to the context.
    mem::forget(record);
    recorded.map_err(|error| ViewError::driver("recording the use of the array", error))
}

/// What keeps threads from recording one event at once. Few events share a lock.
fn recording(event: &CudaEvent) -> &'static Mutex<()> {
    static RECORDING: [Mutex<()>; 32] = [const { Mutex::new(()) }; 32];
    // The driver's events are objects of a hundred bytes and more.
    &RECORDING[(event.cu_event().addr() >> 7) % RECORDING.len()]
}

/// Reading on a stream that another binding made: by its handle.
#[cold]
fn read_foreign<'a, T, A: DevicePtr<T>>(
    array: &'a A,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    let stream = borrow_stream(array.stream().context(), stream);
    mem::forget(wait(&stream, || array.device_ptr(&stream).1)?);
    Ok(Guard::new(move || read_late(array, &stream)))
}

#[cold]
fn write_foreign<'a, T, A: DevicePtrMut<T> + DevicePtr<T>>(
    array: &'a mut A,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    let stream = borrow_stream(array.stream().context(), stream);
    mem::forget(wait(&stream, || array.device_ptr_mut(&stream).1)?);
    Ok(Guard::new(move || write_late(array, &stream)))
}

fn borrow_stream(context: &Arc<CudaContext>, stream: StreamRef<'_>) -> Arc<CudaStream> {
    // SAFETY: launches check that the array's context is the stream's; the stream lives as long
    // as the `StreamRef` does, and the result does not outlive the guard, which borrows for that
    // long. The ordering that the call leaves to its caller is what the guard is for.
    unsafe { context.wrap_borrowed_stream(stream.raw().cast()) }
}

/// The view of managed memory: one address on the host and on every device.
#[inline]
fn unified_view<T, A: DevicePtr<T>>(array: &A) -> View<'_> {
    View::new(probe::pointer(array), array.len(), Place::Everywhere).exclusive()
}

/// Reading or writing managed memory: its one event is waited for and recorded either way, also
/// with one stream in use, since the host reads the memory too.
#[inline]
fn read_unified<'a, T, A: DevicePtr<T>>(
    array: &'a A,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    let Some(native) = stream.native::<CudaStream>() else {
        return read_foreign(array, stream);
    };
    let record = wait(native, || array.device_ptr(native).1)?;
    if array.stream().context() == native.context() {
        return Ok(Guard::new(move || record_after(record)));
    }
    // An event is recorded only on streams of its own context: one of them joins this stream first.
    mem::forget(record);
    let owner = array.stream();
    Ok(Guard::new(move || {
        join(owner, native)?;
        record_after(wait(owner, || array.device_ptr(owner).1)?)
    }))
}

/// What decides whether cudarc orders uses: it counts the streams of a context object.
#[inline(always)]
fn tracker(context: &Arc<CudaContext>) -> *const c_void {
    Arc::as_ptr(context).cast()
}

#[inline(always)]
fn handle(context: &CudaContext) -> *mut c_void {
    context.cu_ctx().cast()
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "cudarc made the ordinal of the driver's own, which is an int"
)]
fn ordinal(context: &CudaContext) -> i32 {
    context.ordinal() as i32
}
