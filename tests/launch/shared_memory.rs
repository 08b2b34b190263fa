//! Is dynamic shared memory given up to what the device has, with the opt-in that it takes?

use std::{sync::Barrier, thread};

use gridcall::{
    GeometryError, Launch, LaunchError, LaunchErrorKind, cudarc::driver::CudaStream, kernel,
};

const KIB: u32 = 1024;

#[kernel(ptx = "../kernels/shared.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x * block.x)]
    safe fn tile(y: &mut [f32]);

    #[requires(y.len() >= grid.x * block.x)]
    safe fn tile_static16(y: &mut [f32]);

    #[requires(y.len() >= grid.x * block.x)]
    safe fn tile_static48(y: &mut [f32]);
}

/// One block of 256 threads with so much shared memory; how many floats of it the kernel could use.
fn floats<K>(stream: &std::sync::Arc<CudaStream>, bytes: u32, kernel: K) -> Result<f32, LaunchError>
where
    K: FnOnce(
        &CudaStream,
        Launch<'static>,
        &mut gridcall::cudarc::driver::CudaSlice<f32>,
    ) -> Result<(), LaunchError>,
{
    let mut y = stream.alloc_zeros::<f32>(256).unwrap();
    kernel(stream, Launch::new(1, 256).shared_mem_bytes(bytes), &mut y)?;
    Ok(stream.clone_dtoh(&y).unwrap().iter().sum())
}

#[track_caller]
fn assert_floats(found: Result<f32, LaunchError>, bytes: u32) {
    // Below 2^24, where a float holds every integer.
    let expected = f32::from(u16::try_from(bytes / 4).unwrap());
    assert_eq!(found.unwrap().to_bits(), expected.to_bits());
}

#[test]
fn up_to_48_kibibytes_and_beyond() {
    let device = device!();
    let stream = device.default_stream();
    for bytes in [0, 4, KIB, 48 * KIB - 4, 48 * KIB, 48 * KIB + 4, 64 * KIB] {
        assert_floats(floats(&stream, bytes, tile), bytes);
    }
    // What was opted in to once is not taken back.
    for bytes in [48 * KIB, 100, 64 * KIB] {
        assert_floats(floats(&stream, bytes, tile), bytes);
    }
    // A size that is no multiple of a float.
    assert_floats(floats(&stream, 48 * KIB + 1, tile), 48 * KIB);
}

#[test]
fn static_memory_counts() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = tile_static16::load(&device).unwrap();
    assert_eq!(kernel.static_shared_mem_bytes(), 16 * KIB);
    for bytes in [32 * KIB - 4, 32 * KIB, 32 * KIB + 4, 40 * KIB] {
        let found = floats(&stream, bytes, tile_static16);
        assert_floats(found, bytes + 16 * KIB);
    }
    for bytes in [0, 4, KIB, 8 * KIB] {
        let found = floats(&stream, bytes, tile_static48);
        assert_floats(found, bytes + 48 * KIB);
    }
}

#[test]
fn all_that_the_device_has_and_no_more() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = tile::load(&device).unwrap();
    let most = kernel.max_dynamic_shared_mem_bytes();
    assert!(most >= 48 * KIB, "{most}");
    assert_floats(floats(&stream, most, tile), most);

    let kernel = tile_static48::load(&device).unwrap();
    assert_eq!(kernel.static_shared_mem_bytes(), 48 * KIB);
    let most = kernel.max_dynamic_shared_mem_bytes();
    let found = floats(&stream, most, tile_static48);
    assert_floats(found, most + 48 * KIB);

    for asked in [most + 1, 1024 * KIB, u32::MAX] {
        let error = floats(&stream, asked, tile_static48).unwrap_err();
        let LaunchErrorKind::Geometry(GeometryError::SharedMemory { limit, fixed, .. }) =
            error.kind()
        else {
            panic!("{error}");
        };
        assert_eq!((*fixed, *limit), (48 * KIB, most + 48 * KIB));
        assert_eq!(
            error.to_string(),
            format!(
                "kernel `tile_static48`: the launch asks for {asked} bytes of dynamic shared memory; \
                 this device allows {limit} a block, of which the kernel takes {fixed} itself; ask for at \
                 most {most}"
            )
        );
    }
    stream.synchronize().unwrap();
    let found = floats(&stream, most, tile_static48);
    assert_floats(found, most + 48 * KIB);
}

#[test]
fn threads_that_opt_in_at_once_all_get_theirs() {
    let device = device!();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for k in 0..8_u32 {
            let (device, start) = (&device, &start);
            scope.spawn(move || {
                let stream = device.new_stream().unwrap();
                let bytes = (40 + 3 * k) * KIB;
                start.wait();
                for _ in 0..20 {
                    assert_floats(floats(&stream, bytes, tile), bytes);
                }
            });
        }
    });
}

#[test]
fn occupancy_falls_with_shared_memory() {
    let device = device!();
    let kernel = tile::load(&device).unwrap();
    let many = kernel.max_active_blocks_per_multiprocessor(256, 0).unwrap();
    let few = kernel
        .max_active_blocks_per_multiprocessor(256, 40 * 1024)
        .unwrap();
    assert!(many > few && few >= 1, "{many} and {few}");
}
