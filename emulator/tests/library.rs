//! Modules of no context, links, and launches with attributes.

mod common;

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use common::{SUCCESS, cu, fresh, kinds};
use cudarc::driver::sys;
use gridcall_emulator::ReportKind;

const CONSTANTS: &str = include_str!("../../ptx/tests/corpus/const_symbol.nvrtc13.sm_90.ptx");
const CLUSTERS: &str = include_str!("../../ptx/tests/corpus/bounds_cluster.nvrtc13.sm_90.ptx");
const FAULTS: &str = include_str!("ptx/faults.ptx");

fn load(text: &str) -> sys::CUlibrary {
    let text = CString::new(text).unwrap();
    let mut library = null_mut();
    let code = cu!(cuLibraryLoadData(
        &raw mut library,
        text.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    assert_eq!(code, SUCCESS);
    library
}

fn allocate(bytes: usize) -> u64 {
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, bytes)), SUCCESS);
    assert_eq!(cu!(cuMemsetD8_v2(pointer, 0, bytes)), SUCCESS);
    pointer
}

fn word(pointer: u64) -> u32 {
    let mut word = 0u32;
    assert_eq!(
        cu!(cuMemcpyDtoH_v2((&raw mut word).cast(), pointer, 4)),
        SUCCESS
    );
    word
}

/// A configuration of one thread with attributes.
fn one_thread(attributes: &mut [sys::CUlaunchAttribute]) -> sys::CUlaunchConfig {
    sys::CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: u32::try_from(attributes.len()).unwrap(),
    }
}

fn attribute(id: sys::CUlaunchAttributeID, words: [u32; 3]) -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute {
        id,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 {
                x: words[0],
                y: words[1],
                z: words[2],
            },
        },
    }
}

#[test]
fn a_kernel_of_a_library_is_launched_like_a_function() {
    let (_device, _context) = fresh();
    let library = load(FAULTS);
    let (mut kernel, mut count, mut name) = (null_mut(), 0, null());
    assert_eq!(
        cu!(cuLibraryGetKernel(
            &raw mut kernel,
            library,
            c"store_at".as_ptr()
        )),
        SUCCESS
    );
    assert_eq!(
        cu!(cuLibraryGetKernel(
            &raw mut kernel,
            library,
            c"nothing".as_ptr()
        )),
        500
    );
    assert_eq!(
        cu!(cuLibraryGetKernelCount(&raw mut count, library)),
        SUCCESS
    );
    assert!(count > 5);
    assert_eq!(cu!(cuKernelGetName(&raw mut name, kernel)), SUCCESS);
    // SAFETY: the driver's texts end with a zero and live as long as the process.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"store_at");
    let (mut offset, mut size) = (9, 9);
    assert_eq!(
        cu!(cuKernelGetParamInfo(
            kernel,
            0,
            &raw mut offset,
            &raw mut size
        )),
        SUCCESS
    );
    assert_eq!((offset, size), (0, 8));
    let mut pointer = allocate(4);
    let word_at = pointer;
    let mut arguments = [(&raw mut pointer).cast()];
    let launch = |function: sys::CUfunction, arguments: &mut [*mut std::ffi::c_void; 1]| {
        cu!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            arguments.as_mut_ptr(),
            null_mut()
        ))
    };
    assert_eq!(launch(kernel.cast(), &mut arguments), SUCCESS);
    assert_eq!(word(word_at), 7);
    let mut function = null_mut();
    assert_eq!(cu!(cuKernelGetFunction(&raw mut function, kernel)), SUCCESS);
    assert_eq!(launch(function, &mut arguments), SUCCESS);
    assert_eq!(cu!(cuCtxSynchronize()), SUCCESS);
    assert_eq!(cu!(cuLibraryUnload(library)), SUCCESS);
    assert_eq!(launch(function, &mut arguments), 400);
}

#[test]
fn a_library_has_variables_in_each_context() {
    let (_device, context) = fresh();
    let (_other_device, other) = fresh();
    let library = load(CONSTANTS);
    let place = || {
        let (mut pointer, mut bytes) = (0, 0);
        let code = cu!(cuLibraryGetGlobal(
            &raw mut pointer,
            &raw mut bytes,
            library,
            c"counter".as_ptr()
        ));
        assert_eq!((code, bytes), (SUCCESS, 4));
        pointer
    };
    context.bind_to_thread().unwrap();
    let first = place();
    assert_eq!(first, place());
    assert_eq!(word(first), 7);
    other.bind_to_thread().unwrap();
    assert_ne!(first, place());
    assert_eq!(cu!(cuLibraryUnload(library)), SUCCESS);
}

#[test]
fn a_link_of_ptx_gives_an_image_that_loads() {
    let (device, _context) = fresh();
    let mut state = null_mut();
    assert_eq!(
        cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &raw mut state)),
        SUCCESS
    );
    let add = |kind| {
        let text = FAULTS.as_bytes();
        cu!(cuLinkAddData_v2(
            state,
            kind,
            text.as_ptr().cast_mut().cast(),
            text.len(),
            c"faults.ptx".as_ptr(),
            0,
            null_mut(),
            null_mut()
        ))
    };
    let (mut image, mut size) = (null_mut(), 0);
    assert_eq!(
        cu!(cuLinkComplete(state, &raw mut image, &raw mut size)),
        200
    );
    assert_eq!(add(sys::CUjitInputType::CU_JIT_INPUT_CUBIN), 209);
    assert_eq!(add(sys::CUjitInputType::CU_JIT_INPUT_PTX), SUCCESS);
    assert_eq!(add(sys::CUjitInputType::CU_JIT_INPUT_PTX), 801);
    assert_eq!(
        cu!(cuLinkComplete(state, &raw mut image, &raw mut size)),
        SUCCESS
    );
    assert_eq!(size, FAULTS.len() + 1);
    let (mut module, mut function) = (null_mut(), null_mut());
    assert_eq!(cu!(cuModuleLoadData(&raw mut module, image)), SUCCESS);
    assert_eq!(
        cu!(cuModuleGetFunction(
            &raw mut function,
            module,
            c"traps".as_ptr()
        )),
        SUCCESS
    );
    assert_eq!(cu!(cuLinkDestroy(state)), SUCCESS);
    assert_eq!(kinds(&device), [ReportKind::InvalidImage]);
}

#[test]
fn functions_of_a_module_are_listed() {
    let (_device, _context) = fresh();
    let text = CString::new(FAULTS).unwrap();
    let (mut module, mut count) = (null_mut(), 0);
    assert_eq!(
        cu!(cuModuleLoadData(&raw mut module, text.as_ptr().cast())),
        SUCCESS
    );
    assert_eq!(
        cu!(cuModuleGetFunctionCount(&raw mut count, module)),
        SUCCESS
    );
    let mut functions = vec![null_mut(); count as usize];
    assert_eq!(
        cu!(cuModuleEnumerateFunctions(
            functions.as_mut_ptr(),
            count,
            module
        )),
        SUCCESS
    );
    let mut name = null();
    assert_eq!(cu!(cuFuncGetName(&raw mut name, functions[0])), SUCCESS);
    // SAFETY: the driver's texts end with a zero and live as long as the process.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"store_at");
    assert_eq!(cu!(cuModuleUnload(module)), SUCCESS);
    assert_eq!(cu!(cuModuleUnload(module)), 400);
}

#[test]
fn machine_code_is_no_image_for_an_emulator() {
    let (device, _context) = fresh();
    let mut module = null_mut();
    let cubin = b"\x7fELF\x02\x01\x01\x33";
    assert_eq!(
        cu!(cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())),
        209
    );
    assert!(device.reports()[0].message.contains("give it PTX"));
    assert_eq!(
        cu!(cuModuleLoad(&raw mut module, c"no/such/file.ptx".as_ptr())),
        301
    );
}

#[test]
fn launches_take_attributes() {
    use sys::CUlaunchAttributeID as Id;
    let (_device, _context) = fresh();
    let library = load(CLUSTERS);
    let function = |name: &CStr| {
        let (mut kernel, mut function) = (null_mut(), null_mut());
        assert_eq!(
            cu!(cuLibraryGetKernel(&raw mut kernel, library, name.as_ptr())),
            SUCCESS
        );
        assert_eq!(cu!(cuKernelGetFunction(&raw mut function, kernel)), SUCCESS);
        function
    };
    let mut pointer = allocate(4);
    let mut arguments = [(&raw mut pointer).cast()];
    let mut launch = |name: &CStr, grid: u32, attributes: &mut [sys::CUlaunchAttribute]| {
        let mut config = one_thread(attributes);
        config.gridDimX = grid;
        cu!(cuLaunchKernelEx(
            &raw const config,
            function(name),
            arguments.as_mut_ptr(),
            null_mut()
        ))
    };
    let cluster = |x| attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [x, 1, 1]);
    let cooperative = attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0]);
    let overlap = attribute(
        Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        [1, 0, 0],
    );
    assert_eq!(launch(c"bounds2", 1, &mut []), SUCCESS);
    assert_eq!(launch(c"bounds2", 1, &mut [cooperative, overlap]), SUCCESS);
    assert_eq!(launch(c"bounds2", 4, &mut [cluster(2)]), SUCCESS);
    assert_eq!(launch(c"bounds2", 4, &mut [cluster(3)]), 912);
    assert_eq!(launch(c"bounds2", 16, &mut [cluster(16)]), 912);
    assert_eq!(launch(c"cluster2", 4, &mut []), SUCCESS);
    assert_eq!(launch(c"cluster2", 4, &mut [cluster(4)]), 912);
    let unknown = attribute(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, [0, 0, 0]);
    assert_eq!(launch(c"bounds2", 1, &mut [unknown]), 400);
    assert_eq!(cu!(cuCtxSynchronize()), SUCCESS);
    assert_eq!(word(pointer), 1.0f32.to_bits());
    let (mut clusters, mut attributes) = (0, [cluster(2)]);
    let mut config = one_thread(&mut attributes);
    // A grid that is not of whole clusters is refused here too (H200).
    let code = cu!(cuOccupancyMaxActiveClusters(
        &raw mut clusters,
        function(c"cluster2"),
        &raw const config
    ));
    assert_eq!((code, clusters), (912, 0));
    config.gridDimX = 2;
    let code = cu!(cuOccupancyMaxActiveClusters(
        &raw mut clusters,
        function(c"cluster2"),
        &raw const config
    ));
    assert_eq!((code, clusters), (SUCCESS, 32 * 132 / 2));
    let code = cu!(cuOccupancyMaxPotentialClusterSize(
        &raw mut clusters,
        function(c"cluster2"),
        &raw const config
    ));
    assert_eq!((code, clusters), (SUCCESS, 8));
}

#[test]
fn launches_record_events() {
    use sys::{CUevent_flags as Flags, CUlaunchAttributeID as Id};
    let (_device, context) = fresh();
    let library = load(CLUSTERS);
    let (mut kernel, mut function) = (null_mut(), null_mut());
    let name = c"bounds2";
    assert_eq!(
        cu!(cuLibraryGetKernel(&raw mut kernel, library, name.as_ptr())),
        SUCCESS
    );
    assert_eq!(cu!(cuKernelGetFunction(&raw mut function, kernel)), SUCCESS);
    let mut pointer = allocate(4);
    let mut arguments = [(&raw mut pointer).cast()];
    let stream = context.new_stream().unwrap();
    for id in [
        Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
        Id::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
    ] {
        let mut launch = |event: sys::CUevent| {
            let mut attributes = [sys::CUlaunchAttribute {
                id,
                pad: [0; 4],
                value: sys::CUlaunchAttributeValue {
                    programmaticEvent: sys::CUlaunchAttributeValue_union__bindgen_ty_2 {
                        event,
                        flags: 0,
                        triggerAtBlockStart: 1,
                    },
                },
            }];
            let mut config = one_thread(&mut attributes);
            config.hStream = stream.cu_stream();
            cu!(cuLaunchKernelEx(
                &raw const config,
                function,
                arguments.as_mut_ptr(),
                null_mut()
            ))
        };
        let event = context.new_event(None).unwrap();
        assert!(event.is_complete());
        assert_eq!(launch(event.cu_event()), SUCCESS);
        // Nothing runs before somebody waits for it.
        assert!(!event.is_complete());
        event.synchronize().unwrap();
        assert_eq!(word(pointer), 1.0f32.to_bits());
        let timed = context.new_event(Some(Flags::CU_EVENT_DEFAULT)).unwrap();
        assert_eq!(launch(timed.cu_event()), 801);
    }
    stream.synchronize().unwrap();
}
