//! A context that broke: errors where they belong, and nothing freed too early.

use gridcall::{
    Buffer, BufferErrorKind, Pinned, after, cover,
    cudarc::driver::{DevicePtr, sys},
};

use crate::kernels::{fill, trap_now};

#[test]
fn after_a_fault_calls_fail_and_drops_do_not_panic() {
    in_child!([], {
        let device = device!(alone);
        let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut x = Buffer::<i32>::zeroed(&a, 16).unwrap();
        let mut y = Buffer::<f32>::zeroed(&a, 16).unwrap();
        let pinned = Pinned::<f32>::zeroed(&device, 16).unwrap();
        // SAFETY: it stays within `x`, and the context is not used for anything afterwards.
        unsafe { trap_now(&a, (1, 16), &mut x, 0) }.unwrap();
        let pending = after(&a, ()).unwrap();
        let polled = after(&a, 1).unwrap();
        let errors = [
            pending.wait().unwrap_err().to_string(),
            pollster::block_on(polled).unwrap_err().to_string(),
            x.to_vec().map(drop).unwrap_err().to_string(),
            y.copy_from_slice(&[1.0; 16]).unwrap_err().to_string(),
            y.download(&b, pinned).map(drop).unwrap_err().to_string(),
            y.clone_to(&b).map(drop).unwrap_err().to_string(),
            Buffer::<f32>::zeroed(&b, 16)
                .map(drop)
                .unwrap_err()
                .to_string(),
            fill(&b, cover(16), &mut y, 1.0, 16)
                .unwrap_err()
                .to_string(),
            after(&b, ()).map(drop).unwrap_err().to_string(),
        ];
        // None of them failed by itself.
        let broken = "the context is broken: an earlier kernel failed in it with \
                      CUDA_ERROR_LAUNCH_FAILED (719)";
        for error in errors {
            assert!(error.contains(broken), "{error}");
        }
        // An address that cannot be lent in order is null, and the context tells why.
        assert_eq!(y.device_ptr(&b).0, 0);
        let stored = device.check_err().unwrap_err();
        assert_eq!(stored.0, sys::CUresult::CUDA_ERROR_LAUNCH_FAILED);
        let error = y.free().unwrap_err();
        assert!(
            matches!(error.kind(), BufferErrorKind::Broken(_)),
            "{error}"
        );
        device.check_err().unwrap();
        drop(x);
        // Nothing could return it, so the context tells, once.
        assert!(device.check_err().is_err());
        device.check_err().unwrap();
    });
}
