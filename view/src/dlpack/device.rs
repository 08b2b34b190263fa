//! Where DLPack says that memory is.

use dlpark::ffi::{DLDevice, DLDeviceType};

use crate::{Place, ViewError};

/// The place of a tensor's memory, if a kernel can reach it.
#[inline]
pub(super) fn place(device: DLDevice) -> Result<Place, ViewError> {
    match device.device_type {
        DLDeviceType::CUDA => Ok(Place::Device(device.device_id)),
        DLDeviceType::CUDAHOST | DLDeviceType::CUDAMANAGED => Ok(Place::Everywhere),
        other => Err(elsewhere(other)),
    }
}

/// The device of memory that is in `place`.
pub(super) fn device(place: Place) -> DLDevice {
    let (device_type, device_id) = match place {
        Place::Context { device, .. } | Place::Device(device) => (DLDeviceType::CUDA, device),
        Place::Everywhere => (DLDeviceType::CUDAMANAGED, 0),
    };
    DLDevice {
        device_type,
        device_id,
    }
}

#[cold]
fn elsewhere(device: DLDeviceType) -> ViewError {
    let name = match device {
        DLDeviceType::CPU => {
            return ViewError::other(
                "the array is in host memory; copy it to the GPU first, where it was made",
            );
        }
        DLDeviceType::OPENCL => "an OpenCL device",
        DLDeviceType::VULKAN => "a Vulkan device",
        DLDeviceType::METAL => "a Metal device",
        DLDeviceType::VPI => "a simulator (VPI)",
        DLDeviceType::ROCM | DLDeviceType::ROCMHOST => "a ROCm device",
        DLDeviceType::EXTDEV => "an extension device",
        DLDeviceType::ONEAPI => "a oneAPI device",
        DLDeviceType::WEBGPU => "a WebGPU device",
        DLDeviceType::HEXAGON => "a Hexagon device",
        DLDeviceType::MAIA => "a MAIA device",
        DLDeviceType::TRN => "a Trainium device",
        _ => {
            return ViewError::other(format!(
                "the array is on a device of DLPack's type {}, which is not CUDA's",
                device.0
            ));
        }
    };
    ViewError::other(format!(
        "the array is on {name}; copy it to the GPU first, where it was made"
    ))
}
