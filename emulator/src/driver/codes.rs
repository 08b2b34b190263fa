//! The driver's result codes, with their names and texts.

use std::ffi::CStr;

use super::border::{Out, OutText};
use super::entry::plain_api;

/// A result code other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u32);

/// What a function of the driver answers.
pub(crate) type Answer<T = ()> = Result<T, Code>;

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_IMAGE: Self = Self(200);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const NO_BINARY_FOR_GPU: Self = Self(209);
    pub(crate) const UNSUPPORTED_LIMIT: Self = Self(215);
    pub(crate) const PEER_ACCESS_UNSUPPORTED: Self = Self(217);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    pub(crate) const FILE_NOT_FOUND: Self = Self(301);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const ILLEGAL_ADDRESS: Self = Self(700);
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: Self = Self(701);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub(crate) const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub(crate) const COOPERATIVE_LAUNCH_TOO_LARGE: Self = Self(720);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const STREAM_CAPTURE_INVALIDATED: Self = Self(901);
    pub(crate) const STREAM_CAPTURE_MERGE: Self = Self(902);
    pub(crate) const STREAM_CAPTURE_UNMATCHED: Self = Self(903);
    pub(crate) const STREAM_CAPTURE_UNJOINED: Self = Self(904);
    pub(crate) const STREAM_CAPTURE_ISOLATION: Self = Self(905);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self = Self(906);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: Self = Self(908);
    pub(crate) const GRAPH_EXEC_UPDATE_FAILURE: Self = Self(910);
    pub(crate) const INVALID_CLUSTER_SIZE: Self = Self(912);
    pub(crate) const UNKNOWN: Self = Self(999);

    /// The name and the text, such as `CUDA_ERROR_NOT_FOUND` and `named symbol not found`.
    #[allow(clippy::too_many_lines, reason = "a list, one line a code")]
    pub(crate) fn words(self) -> Option<(&'static CStr, &'static CStr)> {
        let words = match self.0 {
            0 => (c"CUDA_SUCCESS", c"no error"),
            1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
            2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
            3 => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
            4 => (c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
            5 => (c"CUDA_ERROR_PROFILER_DISABLED", c"profiler disabled while using external profiling tool"),
            6 => (c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"profiler not initialized"),
            7 => (c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"profiler already started"),
            8 => (c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"profiler already stopped"),
            34 => (c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
            36 => (c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", c"API call requires a newer CUDA driver"),
            46 => (c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable"),
            47 => (c"CUDA_ERROR_MULTICAST_RESOURCE_FULL", c"multicast resource full"),
            100 => (c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
            101 => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
            102 => (c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"device doesn't have a valid Grid license"),
            200 => (c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
            201 => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
            202 => (c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", c"context already current"),
            205 => (c"CUDA_ERROR_MAP_FAILED", c"mapping of buffer object failed"),
            206 => (c"CUDA_ERROR_UNMAP_FAILED", c"unmapping of buffer object failed"),
            207 => (c"CUDA_ERROR_ARRAY_IS_MAPPED", c"array is mapped"),
            208 => (c"CUDA_ERROR_ALREADY_MAPPED", c"resource already mapped"),
            209 => (c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
            210 => (c"CUDA_ERROR_ALREADY_ACQUIRED", c"resource already acquired"),
            211 => (c"CUDA_ERROR_NOT_MAPPED", c"resource not mapped"),
            212 => (c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"resource not mapped as array"),
            213 => (c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"resource not mapped as pointer"),
            214 => (c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
            215 => (c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"limit is not supported on this architecture"),
            216 => (c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"exclusive-thread device already in use by a different thread"),
            217 => (c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these two devices"),
            218 => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
            219 => (c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid OpenGL or DirectX context"),
            220 => (c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"uncorrectable NVLink error detected during the execution"),
            221 => (c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"PTX JIT compiler library not found"),
            222 => (c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain."),
            223 => (c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"PTX JIT compilation was disabled"),
            224 => (c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the provided execution affinity is not supported"),
            225 => (c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"the provided PTX contains unsupported call to cudaDeviceSynchronize"),
            226 => (c"CUDA_ERROR_CONTAINED", c"invalid memory access of a contained context"),
            227 => (c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", c"insufficient loader version"),
            300 => (c"CUDA_ERROR_INVALID_SOURCE", c"device kernel image is invalid"),
            301 => (c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
            302 => (c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"shared object symbol not found"),
            303 => (c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"shared object initialization failed"),
            304 => (c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
            400 => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
            401 => (c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state"),
            402 => (c"CUDA_ERROR_LOSSY_QUERY", c"attempted introspection would be semantically lossy"),
            500 => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
            600 => (c"CUDA_ERROR_NOT_READY", c"device not ready"),
            700 => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
            701 => (c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
            702 => (c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the launch timed out and was terminated"),
            703 => (c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"launch uses incompatible texturing mode"),
            704 => (c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
            705 => (c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled"),
            708 => (c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"cannot set while device is active in this process"),
            709 => (c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
            710 => (c"CUDA_ERROR_ASSERT", c"device-side assert triggered"),
            711 => (c"CUDA_ERROR_TOO_MANY_PEERS", c"peer mapping resources exhausted"),
            712 => (c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"part or all of the requested memory range is already mapped"),
            713 => (c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"pointer does not correspond to a registered memory region"),
            714 => (c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"hardware stack error"),
            715 => (c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction was encountered"),
            716 => (c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address"),
            717 => (c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"operation not supported on global/shared address space"),
            718 => (c"CUDA_ERROR_INVALID_PC", c"invalid program counter"),
            719 => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
            720 => (c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"too many blocks in cooperative launch"),
            721 => (c"CUDA_ERROR_TENSOR_MEMORY_LEAK", c"tensor memory not completely freed"),
            800 => (c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
            801 => (c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
            802 => (c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
            803 => (c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"system has unsupported display driver / cuda driver combination"),
            804 => (c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"forward compatibility was attempted on non supported HW"),
            805 => (c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"MPS client failed to connect to the MPS control daemon or the MPS server"),
            806 => (c"CUDA_ERROR_MPS_RPC_FAILURE", c"the remote procedural call between the MPS server and the MPS client failed"),
            807 => (c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"MPS server is not ready to accept new MPS client requests"),
            808 => (c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"the hardware resources required to create MPS client have been exhausted"),
            809 => (c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"the hardware resources required to support device connections have been exhausted"),
            810 => (c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"the MPS client has been terminated by the server"),
            811 => (c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
            812 => (c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"unsupported interaction between different versions of CUDA Dynamic Parallelism"),
            900 => (c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing"),
            901 => (c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture"),
            902 => (c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"operation would result in a merge of separate capture sequences"),
            903 => (c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"capture was not ended in the same stream as it began"),
            904 => (c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"capturing stream has unjoined work"),
            905 => (c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"dependency created on uncaptured work in another stream"),
            906 => (c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"operation would make the legacy stream depend on a capturing blocking stream"),
            907 => (c"CUDA_ERROR_CAPTURED_EVENT", c"operation not permitted on an event last recorded in a capturing stream"),
            908 => (c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"attempt to terminate a thread-local capture sequence from another thread"),
            909 => (c"CUDA_ERROR_TIMEOUT", c"wait operation timed out"),
            910 => (c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
            911 => (c"CUDA_ERROR_EXTERNAL_DEVICE", c"an async error has occurred in external entity outside of CUDA"),
            912 => (c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"a kernel launch error has occurred due to cluster misconfiguration"),
            913 => (c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"the function handle is not loaded"),
            914 => (c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"invalid resource type"),
            915 => (c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"invalid resource configuration"),
            916 => (c"CUDA_ERROR_KEY_ROTATION", c"key rotation in progress"),
            917 => (c"CUDA_ERROR_STREAM_DETACHED", c"the stream is detached"),
            918 => (c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", c"the graph could not be captured again"),
            919 => (c"CUDA_ERROR_FABRIC_NOT_READY", c"fabric is not ready"),
            999 => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
            _ => return None,
        };
        Some(words)
    }

    /// The name in text, or the number where there is none.
    pub(crate) fn name(self) -> String {
        match self.words() {
            Some((name, _)) => name.to_string_lossy().into_owned(),
            None => self.0.to_string(),
        }
    }
}

plain_api! {
    fn cuGetErrorName(code: u32, name: OutText) {
        let words = Code(code).words();
        name.set(words.map(|(text, _)| text))?;
        words.map(drop).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(code: u32, string: OutText) {
        let words = Code(code).words();
        string.set(words.map(|(_, text)| text))?;
        words.map(drop).ok_or(Code::INVALID_VALUE)
    }

    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(super::VERSION)
    }
}
