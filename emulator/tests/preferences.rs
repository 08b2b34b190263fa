//! Launch attributes that only say how fast something is to be, with the codes that an H200 answers (CUDA
//! 13.0), of a launch and of a graph's node.

mod common;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use cudarc::driver::sys;
use gridcall_emulator::Config;

use common::*;

const INVALID_CLUSTER_SIZE: u32 = 912;

const NOTHING: &CStr = c".version 7.8
.target sm_90
.address_size 64
.visible .entry nothing() { ret; }";

/// An attribute by its number, as the bindings of all toolkits have it.
fn attribute(id: u32, value: [u32; 16]) -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute {
        // SAFETY: it has the size of a number, and is only handed to the driver, which refuses what it does
        // not know.
        id: unsafe { std::mem::transmute::<u32, sys::CUlaunchAttributeID>(id) },
        pad: [0; 4],
        // SAFETY: the union is of as many bytes, any of which are one of its values.
        value: unsafe { std::mem::transmute::<[u32; 16], sys::CUlaunchAttributeValue>(value) },
    }
}

fn words(words: &[u32]) -> [u32; 16] {
    let mut value = [0; 16];
    value[..words.len()].copy_from_slice(words);
    value
}

fn window(bytes: u64, ratio: f32, hit: u32, miss: u32) -> [u32; 16] {
    let [low, high] = [bytes & 0xffff_ffff, bytes >> 32].map(|half| u32::try_from(half).unwrap());
    words(&[0x1000, 0, low, high, ratio.to_bits(), hit, miss])
}

fn function() -> sys::CUfunction {
    let (mut module, mut function) = (null_mut(), null_mut());
    let code = cu!(cuModuleLoadData(&raw mut module, NOTHING.as_ptr().cast()));
    assert_eq!(code, SUCCESS);
    let code = cu!(cuModuleGetFunction(
        &raw mut function,
        module,
        c"nothing".as_ptr()
    ));
    assert_eq!(code, SUCCESS);
    function
}

/// What a launch of eight blocks with these answers, and then a node that is given them.
fn answers(function: sys::CUfunction, attributes: &[(u32, [u32; 16])]) -> (u32, u32) {
    let mut list: Vec<_> = attributes
        .iter()
        .map(|&(id, value)| attribute(id, value))
        .collect();
    let config = sys::CUlaunchConfig {
        gridDimX: 8,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: list.as_mut_ptr(),
        numAttrs: u32::try_from(list.len()).unwrap(),
    };
    let of_launch = cu!(cuLaunchKernelEx(
        &raw const config,
        function,
        null_mut(),
        null_mut()
    ));
    let (mut graph, mut node) = (null_mut(), null_mut());
    assert_eq!(cu!(cuGraphCreate(&raw mut graph, 0)), SUCCESS);
    let params = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 8,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: null_mut(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    let code = cu!(cuGraphAddKernelNode_v2(
        &raw mut node,
        graph,
        null(),
        0,
        &raw const params
    ));
    assert_eq!(code, SUCCESS);
    let of_node = list
        .iter()
        .map(|one| {
            cu!(cuGraphKernelNodeSetAttribute(
                node,
                one.id,
                &raw const one.value
            ))
        })
        .find(|code| *code != SUCCESS);
    assert_eq!(cu!(cuGraphDestroy(graph)), SUCCESS);
    (of_launch, of_node.unwrap_or(SUCCESS))
}

#[test]
fn values_that_there_are_not_are_refused() {
    let (_device, _context) = fresh();
    let function = function();
    let most = 134_217_728;
    for (id, value, expected) in [
        (1, window(most, 1.0, 2, 1), SUCCESS),
        (1, window(0, 0.0, 0, 0), SUCCESS),
        (1, window(most + 1, 1.0, 2, 1), INVALID_VALUE),
        (1, window(4, -0.1, 2, 1), INVALID_VALUE),
        (1, window(4, 1.5, 2, 1), INVALID_VALUE),
        (1, window(4, f32::NAN, 2, 1), SUCCESS),
        (1, window(4, 1.0, 2, 2), INVALID_VALUE),
        (5, words(&[2]), SUCCESS),
        (9, words(&[0x0303]), SUCCESS),
        (9, words(&[0x0004]), INVALID_VALUE),
        (9, words(&[0xc800]), INVALID_VALUE),
        (14, words(&[0]), SUCCESS),
        (14, words(&[100]), SUCCESS),
        (14, words(&[101]), INVALID_VALUE),
        (14, words(&[u32::MAX]), INVALID_VALUE),
    ] {
        let seen = answers(function, &[(id, value)]);
        assert_eq!(seen, (expected, expected), "{id}: {value:x?}");
    }
    // A node takes what a launch does not.
    assert_eq!(
        answers(function, &[(5, words(&[3]))]),
        (INVALID_VALUE, SUCCESS)
    );
}

#[test]
fn a_preferred_cluster_is_a_multiple_of_another() {
    let run = |capability: (u32, u32)| {
        let config = Config::default().compute_capability(capability.0, capability.1);
        let (_device, _context) = with(&config);
        let function = function();
        let pair = (4, words(&[2, 1, 1]));
        [
            vec![pair, (11, words(&[4, 1, 1]))],
            vec![pair, (11, words(&[2, 1, 1]))],
            vec![pair, (11, words(&[3, 1, 1]))],
            vec![(11, words(&[4, 1, 1]))],
        ]
        .map(|attributes| answers(function, &attributes))
    };
    // Launches have them to no effect there, nodes not at all.
    let refused = (INVALID_CLUSTER_SIZE, INVALID_VALUE);
    assert_eq!(
        run((9, 0)),
        [
            (SUCCESS, INVALID_VALUE),
            (SUCCESS, INVALID_VALUE),
            refused,
            refused,
        ]
    );
    let (taken, refused) = (
        (SUCCESS, SUCCESS),
        (INVALID_CLUSTER_SIZE, INVALID_CLUSTER_SIZE),
    );
    assert_eq!(run((10, 0)), [taken, taken, refused, refused]);
}

#[test]
fn what_is_set_aside_of_the_cache_is_of_whole_steps() {
    const LIMIT: sys::CUlimit = sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
    const STEP: usize = 3_932_160;
    let (_device, _context) = fresh();
    let told = || {
        let mut bytes = 0;
        assert_eq!(cu!(cuCtxGetLimit(&raw mut bytes, LIMIT)), SUCCESS);
        bytes
    };
    assert_eq!(told(), 3 * STEP);
    for (asked, granted) in [
        (1, STEP),
        (1_000_000, STEP),
        (8 << 20, 3 * STEP),
        (10_000_000, 3 * STEP),
        (10 * STEP, 10 * STEP),
        (0, 0),
    ] {
        assert_eq!(cu!(cuCtxSetLimit(LIMIT, asked)), SUCCESS);
        assert_eq!(told(), granted, "{asked}");
    }
    assert_eq!(cu!(cuCtxSetLimit(LIMIT, 10 * STEP + 1)), INVALID_VALUE);
    assert_eq!(told(), 0);
    assert_eq!(cu!(cuCtxResetPersistingL2Cache()), SUCCESS);
}
