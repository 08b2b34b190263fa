//! Launches: parameters, limits with the codes a driver answers, and the kernel enqueued.

use std::sync::Arc;

use super::border::{Host, In};
use super::codes::{Answer, Code};
use super::device::max_shared_opt_in;
use super::entry::driver_api;
use super::occupancy::blocks_per_multiprocessor;
use super::preference::{self, Preferences};
use super::work::Work;
use super::{Call, Driver};
use crate::config::{Config, Order as StreamOrder};
use crate::exec::{DeviceInfo, FaultKind, Grid, Kernel, Launch, Order};
use crate::failure::Place;
use crate::memory::{Kind, Request, Stage, Token};
use crate::report::{Report, ReportKind};

/// A kernel to be run.
#[derive(Clone, Debug)]
pub(crate) struct KernelWork {
    pub(crate) name: Arc<str>,
    pub(crate) function: usize,
    pub(crate) launch: Launch,
    /// The parameters came as one packed buffer.
    pub(crate) packed: bool,
    /// What grid-wide barriers use; freed with the operation.
    pub(crate) workspace: Option<Token>,
    /// The cluster that the launch asked for.
    pub(crate) cluster: Option<[u32; 3]>,
    /// The one that it prefers.
    pub(crate) preferred: Option<[u32; 3]>,
    pub(crate) preferences: Preferences,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) preferred: Option<[u32; 3]>,
    pub(crate) cooperative: bool,
    /// Whether a cluster may still be asked for, as of a node whose attributes are set one by one.
    pub(crate) unfinished: bool,
}

/// Where the parameters are.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) array: In<Host>,
    pub(crate) extra: In<usize>,
}

const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// Gathers the parameters into the buffer a kernel reads; says whether they came packed.
fn gather(kernel: &Kernel, arguments: Arguments) -> Result<(Vec<u8>, bool), (Code, String)> {
    let invalid = |words: String| (Code::INVALID_VALUE, words);
    let mut buffer = vec![0; kernel.param_bytes as usize];
    let both = !arguments.array.is_null() && !arguments.extra.is_null();
    if both {
        return Err(invalid(
            "parameters are given both as an array and as a packed buffer".into(),
        ));
    }
    if !arguments.extra.is_null() {
        let (pointer, size) = packed(arguments.extra)
            .map_err(|code| (code, "the packed buffer is not described".into()))?;
        let exact = buffer.len();
        if size > exact {
            return Err((
                Code::LAUNCH_OUT_OF_RESOURCES,
                format!(
                    "the packed parameters are {size} bytes, more than the {exact} that the kernel declares"
                ),
            ));
        }
        if size < exact {
            return Err(invalid(format!(
                "the packed parameters are {size} bytes, fewer than the {exact} that the kernel declares \
                 (a GPU would pass zeros for the rest, unnoticed)"
            )));
        }
        pointer.read_to(&mut buffer);
        return Ok((buffer, true));
    }
    if kernel.params.is_empty() {
        return Ok((buffer, false));
    }
    if arguments.array.is_null() {
        let count = kernel.params.len();
        return Err(invalid(format!(
            "there are no parameters, but the kernel declares {count}"
        )));
    }
    for (index, param) in kernel.params.iter().enumerate() {
        let pointer = arguments.array.at(index).unwrap_or(Host::NULL);
        if pointer.is_null() {
            return Err(invalid(format!(
                "the pointer to parameter {index}, `{}`, is null",
                param.name
            )));
        }
        let start = param.offset as usize;
        pointer.read_to(&mut buffer[start..start + param.size as usize]);
    }
    Ok((buffer, false))
}

/// Reads what a list of extra options says of a packed buffer.
fn packed(extra: In<usize>) -> Answer<(Host, usize)> {
    let mut pointer = Host::NULL;
    let mut size = 0;
    let mut index = 0;
    loop {
        match extra.at(index)? {
            END => break,
            BUFFER_POINTER => pointer = Host::from_number(extra.at(index + 1)? as u64)?,
            BUFFER_SIZE => {
                let place = Host::from_number(extra.at(index + 1)? as u64)?;
                if place.is_null() {
                    return Err(Code::INVALID_VALUE);
                }
                let mut bytes = [0; size_of::<usize>()];
                place.read_to(&mut bytes);
                size = usize::from_ne_bytes(bytes);
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        index += 2;
    }
    if pointer.is_null() && size > 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok((pointer, size))
}

fn product(shape: [u32; 3]) -> u64 {
    shape.into_iter().map(u64::from).product()
}

/// Checks a shape against kernel and device: what a driver would answer, and why. Returns the cluster.
fn check_shape(
    kernel: &Kernel,
    function: &super::function::Function,
    config: &Config,
    shape: &Shape,
) -> Result<[u32; 3], (Code, String)> {
    let refuse = |words: String| Err((Code::INVALID_VALUE, words));
    let Shape {
        grid,
        block,
        shared,
        ..
    } = *shape;
    if grid.contains(&0) || block.contains(&0) {
        return refuse(format!(
            "grid {grid:?} and block {block:?} must not hold a 0"
        ));
    }
    if grid[0] > 0x7fff_ffff || grid[1] > 65535 || grid[2] > 65535 {
        return refuse(format!(
            "grid {grid:?} is over the limit of [2147483647, 65535, 65535]"
        ));
    }
    let threads = product(block);
    if block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024 {
        return refuse(format!(
            "block {block:?} is over the limit of [1024, 1024, 64] and 1024 threads"
        ));
    }
    if let Some(required) = kernel.required_block
        && required != block
    {
        return refuse(format!(
            "block {block:?} is not the {required:?} that the kernel requires (`.reqntid`)"
        ));
    }
    if let Some(most) = kernel.max_threads
        && threads > u64::from(most)
    {
        return refuse(format!(
            "{threads} threads a block are more than the {most} of the kernel's launch bounds (`.maxntid`)"
        ));
    }
    if shared > function.max_dynamic_shared {
        return refuse(format!(
            "{shared} bytes of dynamic shared memory are more than the {} that the kernel may have: raise \
             MAX_DYNAMIC_SHARED_SIZE_BYTES, up to {}",
            function.max_dynamic_shared,
            max_shared_opt_in(config).saturating_sub(kernel.shared_bytes)
        ));
    }
    let mut cluster = check_cluster(kernel, function, config, shape)?;
    if let Some(preferred) = shape.preferred {
        let regular = shape.cluster.or(kernel.required_cluster);
        check_preferred(kernel, function, shape, preferred, regular)?;
        // Older devices have clusters of one kind. Others may choose; here they have room for these.
        if config.compute_capability.0 >= 10 {
            cluster = preferred;
        }
    }
    if shape.cooperative {
        let each = blocks_per_multiprocessor(kernel, config, threads, shared);
        let most = u64::from(each) * u64::from(config.multiprocessors);
        if product(grid) > most {
            return Err((
                Code::COOPERATIVE_LAUNCH_TOO_LARGE,
                format!(
                    "{} blocks are more than the {most} that the device runs at once",
                    product(grid)
                ),
            ));
        }
    }
    Ok(cluster)
}

fn check_cluster(
    kernel: &Kernel,
    function: &super::function::Function,
    config: &Config,
    shape: &Shape,
) -> Result<[u32; 3], (Code, String)> {
    let refuse = |words: String| Err((Code::INVALID_CLUSTER_SIZE, words));
    let set = (!function.cluster.contains(&0)).then_some(function.cluster);
    let wanted = shape.cluster.or(set);
    let cluster = match (kernel.required_cluster, wanted) {
        (Some(required), Some(wanted)) if required != wanted => {
            return refuse(format!(
                "cluster {wanted:?} is not the {required:?} that the kernel requires"
            ));
        }
        (Some(required), _) => required,
        (None, Some(wanted)) => wanted,
        (None, None) if kernel.explicit_cluster && !shape.unfinished => {
            return refuse("the kernel must be launched with a cluster".into());
        }
        (None, None) => return Ok([1; 3]),
    };
    if cluster.contains(&0) {
        return refuse(format!("cluster {cluster:?} must not hold a 0"));
    }
    if product(cluster) > 1 && config.compute_capability.0 < 9 {
        return refuse("clusters need a device of compute capability 9.0 or newer".into());
    }
    check_whole(kernel, function, shape, cluster)?;
    Ok(cluster)
}

fn check_preferred(
    kernel: &Kernel,
    function: &super::function::Function,
    shape: &Shape,
    preferred: [u32; 3],
    regular: Option<[u32; 3]>,
) -> Result<(), (Code, String)> {
    let is_multiple = |(preferred, each): (u32, u32)| preferred != 0 && preferred % each == 0;
    match regular {
        Some(regular) if preferred.into_iter().zip(regular).all(is_multiple) => {
            check_whole(kernel, function, shape, preferred)
        }
        _ => Err((
            Code::INVALID_CLUSTER_SIZE,
            format!(
                "the preferred cluster {preferred:?} is no multiple of the launch's, {regular:?}"
            ),
        )),
    }
}

/// That a cluster is not too large, and that the grid is made of such.
fn check_whole(
    kernel: &Kernel,
    function: &super::function::Function,
    shape: &Shape,
    cluster: [u32; 3],
) -> Result<(), (Code, String)> {
    let refuse = |words: String| Err((Code::INVALID_CLUSTER_SIZE, words));
    let blocks = product(cluster);
    let most = match (kernel.max_cluster_rank, function.non_portable_cluster) {
        (Some(rank), _) => u64::from(rank),
        (None, true) => 16,
        (None, false) => 8,
    };
    if blocks > most {
        return refuse(format!("{blocks} blocks a cluster are more than {most}"));
    }
    for (blocks, cluster) in shape.grid.into_iter().zip(cluster) {
        if blocks % cluster != 0 {
            return refuse(format!(
                "grid {:?} is no multiple of cluster {cluster:?}",
                shape.grid
            ));
        }
    }
    Ok(())
}

impl Kernel {
    /// Turns a shape of clusters, as a launch gives it to a kernel with `.blocksareclusters`, into one
    /// of blocks. There one thread stands for the block that the kernel requires (H200).
    fn count_blocks(&self, shape: &mut Shape) {
        if !self.counts_clusters {
            return;
        }
        let each = self.required_cluster.unwrap_or([1; 3]);
        for (blocks, each) in shape.grid.iter_mut().zip(each) {
            *blocks = blocks.saturating_mul(each);
        }
        if let (Some(required), [1, 1, 1]) = (self.required_block, shape.block) {
            shape.block = required;
        }
    }

    /// The grid as a launch counts it.
    pub(crate) fn grid_of_launch(&self, blocks: [u32; 3]) -> [u32; 3] {
        match self.required_cluster {
            Some([x, y, z]) if self.counts_clusters => {
                [blocks[0] / x, blocks[1] / y, blocks[2] / z]
            }
            _ => blocks,
        }
    }
}

impl Driver {
    /// Makes the work of a launch, or says why there is none.
    pub(crate) fn prepare(
        &mut self,
        function: usize,
        mut shape: Shape,
        arguments: Arguments,
    ) -> Answer<KernelWork> {
        let function = self.resolve_function(function)?;
        let state = self.function(function)?;
        let module = self.module(state.module)?;
        let context = self.get_context(module.context)?;
        let kernel = self.kernel(function)?;
        let config = self.config_of(function)?;
        let device = context.device;
        let name: Arc<str> = kernel.name.as_str().into();
        kernel.count_blocks(&mut shape);
        let checked = check_shape(kernel, state, config, &shape)
            .and_then(|cluster| Ok((cluster, gather(kernel, arguments)?)));
        let (cluster, (params, packed)) = match checked {
            Ok(checked) => checked,
            Err((code, words)) => return Err(self.refuse_launch(device, &name, code, &words)),
        };
        let stack =
            u32::try_from(context.stack_bytes().saturating_mul(STACK_FACTOR)).unwrap_or(u32::MAX);
        let launch = Launch {
            program: Arc::clone(&module.program),
            kernel: state.kernel,
            grid: shape.grid,
            block: shape.block,
            cluster,
            dynamic_shared: shape.shared,
            params,
            cooperative: shape.cooperative,
            symbols: Arc::clone(&module.symbols),
            workspace: 0,
            device: DeviceInfo {
                multiprocessors: config.multiprocessors,
                compute_capability: config.compute_capability,
                local_bytes_per_thread: kernel.local_bytes.saturating_add(stack),
                ..DeviceInfo::default()
            },
            order: Order::Deterministic,
            step_budget: config.step_budget,
            check_global_races: config.check_global_races,
        };
        Ok(KernelWork {
            name,
            function,
            launch,
            packed,
            workspace: None,
            cluster: shape.cluster,
            preferred: shape.preferred,
            preferences: Preferences::new(),
        })
    }

    /// Checks the shape of a node whose attributes have changed, or will change no more.
    pub(crate) fn check_node(&mut self, kernel: &mut KernelWork, unfinished: bool) -> Answer {
        let shape = Shape {
            grid: kernel.launch.grid,
            block: kernel.launch.block,
            shared: kernel.launch.dynamic_shared,
            cluster: kernel.cluster,
            preferred: kernel.preferred,
            cooperative: kernel.launch.cooperative,
            unfinished,
        };
        let function = self.function(kernel.function)?;
        let config = self.config_of(kernel.function)?;
        match check_shape(self.kernel(kernel.function)?, function, config, &shape) {
            Ok(cluster) => {
                kernel.launch.cluster = cluster;
                Ok(())
            }
            Err((code, words)) => {
                let context = self.context_of_function(kernel.function)?;
                let device = self.get_context(context)?.device;
                Err(self.refuse_launch(device, &kernel.name, code, &words))
            }
        }
    }

    fn refuse_launch(&mut self, device: u32, kernel: &str, code: Code, words: &str) -> Code {
        self.report(Report {
            kind: ReportKind::InvalidLaunch,
            device: device as usize,
            code: Some(code.0),
            kernel: Some(kernel.into()),
            fault: None,
            message: format!("the launch of kernel `{kernel}` is refused: {words}"),
        });
        code
    }

    pub(crate) fn context_of_function(&self, function: usize) -> Answer<usize> {
        Ok(self.module(self.function(function)?.module)?.context)
    }

    /// Makes the grid of one run of a kernel, with what it needs beside its parameters.
    pub(crate) fn make_grid(&mut self, kernel: &mut KernelWork) -> Answer<Box<Grid>> {
        let context = self.context_of_function(kernel.function)?;
        let state = self.get_context(context)?;
        let (device, group) = (state.device, state.group);
        let random = self
            .devices
            .get(&device)
            .is_some_and(|device| matches!(device.config.order, StreamOrder::Random(_)));
        if random && let Some(group) = self.groups.get_mut(&group) {
            kernel.launch.order = Order::Seeded(group.draw(usize::MAX) as u64);
        }
        if kernel.launch.cooperative {
            let token = self.memory.allocate(Request {
                kind: Kind::Internal,
                size: 256,
                device,
                context,
                stage: Stage::Live,
                align: 1,
            });
            let token = token.ok_or(Code::OUT_OF_MEMORY)?;
            kernel.workspace = Some(token);
            kernel.launch.workspace = self.address(token);
        }
        match Grid::new(kernel.launch.clone()) {
            Ok(grid) => Ok(Box::new(grid)),
            Err(fault) => {
                if let Some(token) = kernel.workspace.take() {
                    self.memory.free(token);
                }
                let code = Code(fault.kind.code());
                let kind = if fault.kind == FaultKind::NotSupported {
                    ReportKind::Unsupported
                } else {
                    ReportKind::InvalidLaunch
                };
                self.report(Report {
                    kind,
                    device: device as usize,
                    code: Some(code.0),
                    kernel: Some(fault.kernel.clone()),
                    message: fault.to_string(),
                    fault: Some(fault),
                });
                Err(code)
            }
        }
    }

    /// Counts a launch for the failures that a test asked for; says whether it is to fail late.
    pub(crate) fn strike_launch(&mut self, context: usize, kernel: &str) -> Answer<bool> {
        let device = self.get_context(context)?.device;
        let Some(state) = self.devices.get_mut(&device) else {
            return Ok(false);
        };
        let late = state.failures.strike(Place::Late);
        if state.failures.strike(Place::Launch) {
            let message =
                format!("the launch of kernel `{kernel}` fails because the test asked for it");
            return Err(self.refuse(
                ReportKind::Injected,
                device,
                Code::LAUNCH_OUT_OF_RESOURCES,
                message,
            ));
        }
        Ok(late)
    }
}

/// The interpreter's frames are larger than a GPU's: so much more it is given of each byte of the limit.
const STACK_FACTOR: usize = 16;

impl Call {
    fn launch(
        &mut self,
        function: usize,
        shape: Shape,
        arguments: Arguments,
        stream: usize,
        preferences: Preferences,
    ) -> Answer {
        let key = self.stream(stream)?;
        let packed_grid = shape.cooperative && !arguments.extra.is_null();
        let mut kernel = self.prepare(function, shape, arguments)?;
        let config = self.config_of(kernel.function)?;
        let wrong = preferences
            .iter()
            .find_map(|(id, value)| preference::check(config, *id, value, false).err());
        if let Some(words) = wrong {
            let device = self.device_of_stream(key);
            return Err(self.refuse_launch(device, &kernel.name, Code::INVALID_VALUE, &words));
        }
        // What a node that is captured keeps.
        kernel.preferences = preferences;
        kernel
            .preferences
            .retain(|id, _| preference::is_of_node(*id));
        let context = self.get_stream(key)?.context;
        if self.context_of_function(kernel.function)? != context {
            let device = self.device_of_stream(key);
            let words = "it belongs to another context than the stream";
            return Err(self.refuse_launch(device, &kernel.name, Code::INVALID_HANDLE, words));
        }
        let capturing = self.get_stream(key)?.capture.is_some();
        if capturing && packed_grid {
            let device = self.device_of_stream(key);
            let words = "a cooperative grid in a graph takes no packed parameters";
            return Err(self.refuse_launch(device, &kernel.name, Code::INVALID_VALUE, words));
        }
        let late = !capturing && self.strike_launch(context, &kernel.name)?;
        let grid = self.make_grid(&mut kernel)?;
        if capturing {
            if let Some(token) = kernel.workspace.take() {
                self.memory.free(token);
            }
            self.submit(key, Work::Kernel(Box::new(kernel)))?;
            return Ok(());
        }
        if self.capture_work(key, &Work::Nothing)? {
            return Ok(());
        }
        let op = self.enqueue(key, Work::Kernel(Box::new(kernel)), Some(grid))?;
        if late && let Some(op) = self.ops.get_mut(&op) {
            op.fails = true;
        }
        self.after_submit(op);
        Ok(())
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) stream: usize,
    pub(crate) attributes: In<Attribute>,
    pub(crate) count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Attribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

const IGNORE: u32 = 0;
pub(crate) const COOPERATIVE: u32 = 2;
pub(crate) const CLUSTER_DIMENSION: u32 = 4;
pub(crate) const PREFERRED_CLUSTER_DIMENSION: u32 = 11;
const PROGRAMMATIC_EVENT: u32 = 7;
const LAUNCH_COMPLETION_EVENT: u32 = 12;

impl LaunchConfig {
    /// The shape, with what the attributes say of it.
    pub(crate) fn shape(&self) -> Answer<Shape> {
        let mut shape = Shape {
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            ..Shape::default()
        };
        for index in 0..self.count as usize {
            let attribute = self.attributes.at(index)?;
            match attribute.id {
                // What is recorded before a kernel has ended may be recorded later.
                IGNORE | PROGRAMMATIC_EVENT | LAUNCH_COMPLETION_EVENT => {}
                COOPERATIVE => shape.cooperative = attribute.value[0] != 0,
                CLUSTER_DIMENSION => {
                    let [x, y, z, ..] = attribute.value;
                    shape.cluster = Some([x, y, z]);
                }
                PREFERRED_CLUSTER_DIMENSION => {
                    let [x, y, z, ..] = attribute.value;
                    shape.preferred = Some([x, y, z]);
                }
                id if preference::is_preference(id) => {}
                _ => return Err(Code::NOT_SUPPORTED),
            }
        }
        Ok(shape)
    }

    /// What the launch asks for that changes nothing here.
    fn preferences(&self) -> Answer<Preferences> {
        let attributes = self.attributes.array(self.count as usize)?;
        Ok(attributes
            .into_iter()
            .filter(|attribute| preference::is_preference(attribute.id))
            .map(|attribute| (attribute.id, attribute.value))
            .collect())
    }

    /// The events that the launch records.
    fn events(&self) -> Answer<Vec<usize>> {
        let mut events = Vec::new();
        for index in 0..self.count as usize {
            let Attribute { id, value, .. } = self.attributes.at(index)?;
            if id == PROGRAMMATIC_EVENT || id == LAUNCH_COMPLETION_EVENT {
                let [low, high, flags, ..] = value;
                if flags != 0 {
                    return Err(Code::INVALID_VALUE);
                }
                events.push(low as usize | (high as usize) << 32);
            }
        }
        Ok(events)
    }
}

driver_api! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz(
        call, function: usize, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: usize, array: In<Host>, extra: In<usize>
    ) {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            ..Shape::default()
        };
        call.launch(function, shape, Arguments { array, extra }, stream, Preferences::new())
    }

    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz(
        call, function: usize, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: usize, array: In<Host>
    ) {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            cooperative: true,
            ..Shape::default()
        };
        call.launch(function, shape, Arguments { array, extra: In::NULL }, stream, Preferences::new())
    }

    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz(call, config: In<LaunchConfig>, function: usize, array: In<Host>, extra: In<usize>) {
        let config = config.get()?;
        let shape = config.shape()?;
        let events = config.events()?;
        for event in &events {
            call.check_event_of_launch(*event, config.stream)?;
        }
        call.launch(function, shape, Arguments { array, extra }, config.stream, config.preferences()?)?;
        for event in events {
            call.record(event, config.stream, false)?;
        }
        Ok(())
    }
}
