//! What is checked of a launch before any thread runs, and what is settled for all of its threads.

use super::context::Setting;
use super::fault::{Fault, FaultKind};
use super::launch::Launch;
use super::program::{Kernel, Program, SharedVariable};

/// The most threads of a block, and the most of each extent.
const BLOCK: (u64, [u32; 3]) = (1024, [1024, 1024, 64]);
/// More shared memory than any block has.
const SHARED: u32 = 1 << 20;
const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// Checks a launch against its kernel.
pub(crate) fn launch(program: &Program, launch: &Launch) -> Result<(), Box<Fault>> {
    let Some(kernel) = program.kernels().get(launch.kernel) else {
        let message = format!(
            "kernel {} of the {} that the module has",
            launch.kernel,
            program.kernels().len()
        );
        return Err(fault(FaultKind::InvalidLaunch, "", message));
    };
    check_supported(kernel)?;
    if !program.functions()[Program::kernel_function(launch.kernel)].has_body {
        let message = "the kernel is declared in this module, but not defined".to_owned();
        return Err(fault(FaultKind::InvalidLaunch, &kernel.name, message));
    }
    let refuse = |message: String| Err(fault(FaultKind::InvalidLaunch, &kernel.name, message));
    let [x, y, z] = launch.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if launch
        .block
        .iter()
        .zip(BLOCK.1)
        .any(|(extent, most)| *extent == 0 || *extent > most)
        || threads > BLOCK.0
    {
        return refuse(format!(
            "a block of {x} x {y} x {z} threads, where 1024 in all and 1024 x 1024 x 64 are the most"
        ));
    }
    if let Some(most) = kernel.max_threads
        && threads > u64::from(most)
    {
        return refuse(format!(
            "a block of {threads} threads for a kernel that takes {most} at most"
        ));
    }
    if let Some(required) = kernel.required_block
        && required != launch.block
    {
        return refuse(format!(
            "a block of {:?} threads for a kernel that requires {required:?}",
            launch.block
        ));
    }
    let [gx, gy, gz] = launch.grid;
    if launch
        .grid
        .iter()
        .zip(GRID)
        .any(|(extent, most)| *extent == 0 || *extent > most)
    {
        return refuse(format!(
            "a grid of {gx} x {gy} x {gz} blocks, where 2147483647 x 65535 x 65535 are the most"
        ));
    }
    let uneven = launch
        .grid
        .iter()
        .zip(launch.cluster)
        .any(|(grid, cluster)| cluster == 0 || grid % cluster != 0);
    let size = launch.cluster.iter().fold(1_u64, |size, extent| {
        size.saturating_mul(u64::from(*extent))
    });
    if uneven || size > 16 {
        return refuse(format!(
            "clusters of {:?} blocks in a grid of {:?}",
            launch.cluster, launch.grid
        ));
    }
    if let Some(required) = kernel.required_cluster
        && required != launch.cluster
    {
        return refuse(format!(
            "clusters of {:?} blocks for a kernel that requires {required:?}",
            launch.cluster
        ));
    }
    let shared = kernel.shared_bytes.saturating_add(launch.dynamic_shared);
    if shared > SHARED {
        return refuse(format!(
            "{shared} bytes of shared memory, where a block has {SHARED} at most"
        ));
    }
    if launch.params.len() < kernel.param_bytes as usize {
        return refuse(format!(
            "{} bytes of parameters for a kernel that takes {}",
            launch.params.len(),
            kernel.param_bytes
        ));
    }
    if launch.symbols.len() < program.variables().len() {
        return refuse(format!(
            "addresses of {} variables for a module that has {}",
            launch.symbols.len(),
            program.variables().len()
        ));
    }
    Ok(())
}

fn check_supported(kernel: &Kernel) -> Result<(), Box<Fault>> {
    let Some(first) = kernel.unsupported.first() else {
        return Ok(());
    };
    let listed = kernel.unsupported.iter().map(|missing| {
        let times = if missing.count == 1 {
            String::new()
        } else {
            format!(", {} times", missing.count)
        };
        format!(
            "`{}` (line {}{times})",
            missing.instruction, missing.position.line
        )
    });
    let message = format!(
        "not supported by the emulator: {}; run the kernel on a GPU",
        listed.collect::<Vec<_>>().join(", ")
    );
    let mut fault = fault(FaultKind::NotSupported, &kernel.name, message);
    fault.position = Some(first.position);
    Err(fault)
}

fn fault(kind: FaultKind, kernel: &str, message: String) -> Box<Fault> {
    Box::new(Fault {
        kind,
        kernel: kernel.to_owned(),
        block: None,
        thread: None,
        position: None,
        source: None,
        address: None,
        registers: Vec::new(),
        message,
    })
}

/// Settles what is the same for all threads of a launch that was checked.
pub(crate) fn setting(program: &Program, launch: Launch) -> Setting {
    let kernel = &program.kernels()[launch.kernel];
    let mut shared_offsets = vec![0; program.shared().len()];
    let mut end: u32 = 0;
    let mut dynamic_align = 16;
    for at in &kernel.shared {
        match program.shared()[*at] {
            SharedVariable {
                size: Some(size),
                align,
            } => {
                let start = end.checked_next_multiple_of(align.max(1)).unwrap_or(end);
                shared_offsets[*at] = start;
                end = start.saturating_add(size);
            }
            SharedVariable { size: None, align } => dynamic_align = dynamic_align.max(align),
        }
    }
    let dynamic = end.checked_next_multiple_of(dynamic_align).unwrap_or(end);
    for at in &kernel.shared {
        if program.shared()[*at].size.is_none() {
            shared_offsets[*at] = dynamic;
        }
    }
    let shared_bytes = if launch.dynamic_shared == 0 {
        end
    } else {
        dynamic.saturating_add(launch.dynamic_shared)
    };
    let explicit_cluster = kernel.explicit_cluster || launch.cluster != [1, 1, 1];
    let mut setting = Setting {
        granule: kernel.granule,
        shared_offsets,
        shared_bytes,
        explicit_cluster,
        presets: Vec::new(),
        launch,
    };
    setting.resolve(
        program.functions(),
        &program.kernels()[setting.launch.kernel].reached,
    );
    setting
}
