//! Are errors small, and do they say the same everywhere? What needs a device to arise is tested where it
//! arises.

use std::error::Error;

use gridcall::{
    ArgumentError, Axis, GeometryError, LaunchError, LoadError, LoadErrorKind, ViewError,
};

#[test]
fn an_error_is_one_word_and_success_costs_none() {
    assert_eq!(size_of::<LaunchError>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), LaunchError>>(), size_of::<usize>());
    assert_eq!(size_of::<LoadError>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), LoadError>>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), ViewError>>(), size_of::<usize>());
}

#[test]
fn errors_are_errors_of_any_thread() {
    fn is_error<E: Error + Send + Sync + 'static>() {}
    is_error::<LaunchError>();
    is_error::<LoadError>();
    is_error::<ViewError>();
    let boxed: Box<dyn Error + Send + Sync> = load(LoadErrorKind::Capturing { kernel: "k" }).into();
    assert!(boxed.downcast_ref::<LoadError>().is_some());
}

fn load(kind: LoadErrorKind) -> LoadError {
    kind.into()
}

#[test]
fn load_errors_name_both_sides_and_the_cure() {
    for (error, text) in [
        (
            LoadErrorKind::NoDriver {
                library: "libcuda.so.1",
                reason: "no such file".to_owned(),
            },
            "no CUDA driver found: `libcuda.so.1` cannot be opened (no such file); install the NVIDIA \
             driver, or let GRIDCALL_DRIVER be other than `cuda`, for the emulator",
        ),
        (
            LoadErrorKind::OldDriver { function: "cuNew" },
            "the CUDA driver is too old: it has no `cuNew`; update the NVIDIA driver",
        ),
        (
            LoadErrorKind::NoDevice {
                ordinal: 3,
                count: 2,
            },
            "there is no CUDA device 3: the driver counts 2",
        ),
        (
            LoadErrorKind::PtxTooNew {
                kernel: "relu",
                path: "kernels/relu.ptx",
                ptx: (9, 0),
                driver: 12040,
                capability: (8, 6),
            },
            "kernel `relu`: `kernels/relu.ptx` is PTX ISA 9.0 (CUDA 13.0), and this driver supports \
             up to CUDA 12.4 (PTX ISA 8.4); update the driver, compile with an older toolkit, or give machine \
             code for `sm_86` beside it (`cubin = \"..\"`)",
        ),
        (
            LoadErrorKind::PtxTooNew {
                kernel: "relu",
                path: "kernels/relu.ptx",
                ptx: (9, 5),
                driver: 13000,
                capability: (10, 0),
            },
            "kernel `relu`: `kernels/relu.ptx` is PTX ISA 9.5 (CUDA 13.5), and this driver supports \
             up to CUDA 13.0 (PTX ISA 9.0); update the driver, compile with an older toolkit, or give \
             machine code for `sm_100` beside it (`cubin = \"..\"`)",
        ),
        (
            LoadErrorKind::NoVariant {
                kernel: "relu",
                capability: (7, 0),
                variants: "`a.ptx` for `sm_80`, `b.ptx` for `sm_90`".to_owned(),
            },
            "kernel `relu`: no image is for a device of compute capability 7.0; there are `a.ptx` for `sm_80`, \
             `b.ptx` for `sm_90`; add one for that capability or a lower one",
        ),
        (
            LoadErrorKind::WrongTarget {
                kernel: "relu",
                path: "kernels/relu.ptx",
                target: "sm_100a",
                capability: (9, 0),
            },
            "kernel `relu`: `kernels/relu.ptx` is compiled for `sm_100a`, which a device of compute \
             capability 9.0 cannot run; compile for `compute_90` or lower, without a suffix",
        ),
        (
            LoadErrorKind::NoEntry {
                kernel: "relu",
                entry: "_Z4reluPfi".to_owned(),
                path: "kernels/relu.ptx".to_owned(),
                instead: "; it has `relu`".to_owned(),
            },
            "kernel `relu`: the driver finds no entry `_Z4reluPfi` in kernels/relu.ptx; it has `relu`",
        ),
        (
            LoadErrorKind::Parameters {
                kernel: "relu",
                path: "kernels/relu.ptx".to_owned(),
                index: 1,
                name: "n",
                declared: 4,
                offset: 8,
                found: "8 bytes at offset 8".to_owned(),
            },
            "kernel `relu`: parameter 1, `n`, is 4 bytes at offset 8 in `kernels/relu.ptx`, but the \
             loaded kernel takes 8 bytes at offset 8; declare what it takes, or load what was compiled \
             from the same source",
        ),
    ] {
        let error = load(error);
        assert_eq!(error.to_string(), text);
        assert_eq!(error.kind().to_string(), text);
    }
}

#[test]
fn argument_errors_name_both_sides_and_the_cure() {
    for (error, text) in [
        (
            ArgumentError::OtherDevice {
                array: 1,
                stream: 0,
            },
            "the array is on device 1, the stream is on device 0; launch on a stream of device 1, or copy the array",
        ),
        (
            ArgumentError::OtherContext { device: 0 },
            "the array belongs to another context of device 0 than the stream; launch on a stream of the array's context, or copy the array",
        ),
        (
            ArgumentError::View(ViewError::other("it is gone")),
            "it is gone",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn geometry_errors_name_the_axis() {
    for (axis, name) in [(Axis::X, "x"), (Axis::Y, "y"), (Axis::Z, "z")] {
        assert_eq!(axis.to_string(), name);
        assert_eq!(
            GeometryError::ZeroBlock { axis }.to_string(),
            format!("block.{name} is 0; a block has at least one thread along each axis")
        );
    }
}

#[test]
fn errors_neither_shout_nor_end_with_a_stop() {
    for kind in [
        LoadErrorKind::OldDriver { function: "cuNew" },
        LoadErrorKind::Capturing { kernel: "relu" },
        LoadErrorKind::NoDevice {
            ordinal: 1,
            count: 1,
        },
    ] {
        let text = kind.to_string();
        assert!(!text.ends_with('.'), "{text}");
        assert!(text.starts_with(char::is_lowercase), "{text}");
    }
}
