//! Graphs of a hundred launches: replayed, and one of their nodes updated, by the bare calls and by
//! ours.

use std::{
    error::Error,
    ffi::{c_uint, c_void},
    ptr,
    sync::Arc,
};

use gridcall::{
    Buffer, Graph, GraphExec, GraphSliceMut, Node, cover,
    cudarc::driver::{
        CudaFunction, CudaStream,
        sys::{CUcontext, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUresult, CUstream},
    },
};
use libloading::Library;

use crate::{
    Contender,
    bare::{Form, Leaked, Prepared},
    kernels::{empty4, empty10},
    line_up::{Kernel, LineUp, Way},
    scene::{BLOCKS, Scene, THREADS},
};

/// Launches of each graph, each of which waits for the one before.
pub const NODES: usize = 100;

/// `cuGraphLaunch` itself.
struct BareReplay {
    functions: Functions,
    exec: CUgraphExec,
    stream: Arc<CudaStream>,
}

/// Our graph.
struct Replay {
    graph: GraphExec<'static>,
    stream: Arc<CudaStream>,
}

/// `cuGraphExecKernelNodeSetParams` itself, its parameters prepared.
struct BareUpdate {
    functions: Functions,
    exec: CUgraphExec,
    node: CUgraphNode,
    params: KernelNodeParams,
    /// The factor among them.
    alpha: *mut f32,
}

/// Our update of a node of the kernel `K`, which takes `N` arrays.
struct Update<K, const N: usize> {
    graph: GraphExec<'static>,
    node: Node<K>,
    arrays: [GraphSliceMut<f32>; N],
    alpha: f32,
    n: i32,
}

/// Replays of launches of `empty10`, the bare call first.
///
/// # Errors
///
/// If the driver refuses something.
pub fn replays(scene: &Scene) -> Result<LineUp, Box<dyn Error>> {
    let mut graph = Update::<empty10, 8>::new(scene)?.graph;
    graph.upload(scene.stream())?;
    let stream = || scene.stream().clone();
    let bare = |form| {
        let bare = bare(scene, Kernel::Empty10, form)?;
        Ok::<_, Box<dyn Error>>(BareReplay {
            functions: bare.functions,
            exec: bare.exec,
            stream: stream(),
        })
    };
    Ok(vec![
        (Way::BareReplay, Box::new(bare(Form::Array)?)),
        (Way::PackedReplay, Box::new(bare(Form::Packed)?)),
        (
            Way::Replay,
            Box::new(Replay {
                graph,
                stream: stream(),
            }),
        ),
    ])
}

/// Updates of a node of launches of `empty4` or `empty10`, each to another factor, the bare call first.
///
/// # Errors
///
/// If the driver refuses something.
pub fn updates(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    let ours: Box<dyn Contender> = match kernel {
        Kernel::Empty4 => Box::new(Update::<empty4, 2>::new(scene)?),
        Kernel::Empty10 => Box::new(Update::<empty10, 8>::new(scene)?),
        Kernel::Empty0 | Kernel::Empty12 => return Err("no graph is made of this kernel".into()),
    };
    Ok(vec![
        (Way::BareUpdate, Box::new(bare(scene, kernel, Form::Array)?)),
        (
            Way::PackedUpdate,
            Box::new(bare(scene, kernel, Form::Packed)?),
        ),
        (Way::Update, ours),
    ])
}

macro_rules! update {
    ($kernel:ident, $count:literal: $($read:ident),+; $written:ident) => {
        impl Update<$kernel, $count> {
            fn new(scene: &Scene) -> Result<Self, Box<dyn Error>> {
                let mut graph = Graph::new(scene.context())?;
                let mut array = || graph.own(Buffer::<f32>::zeroed(scene.stream(), 256)?);
                $(let $read = array()?;)+
                let mut $written = array()?;
                let mut node = None;
                for _ in 0..NODES {
                    let arguments = $kernel {
                        $($read: &$read,)+
                        $written: &mut $written,
                        alpha: 2.0,
                        n: 256,
                    };
                    node = Some(graph.add(cover(256), arguments)?);
                }
                let mut graph = graph.instantiate()?;
                // Whatever a stream does at its first use of an array.
                graph.launch(scene.stream())?;
                Ok(Update {
                    graph,
                    node: node.ok_or("a graph without nodes")?,
                    arrays: [$($read,)+ $written],
                    alpha: 2.0,
                    n: 256,
                })
            }
        }

        impl Contender for Update<$kernel, $count> {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                self.alpha = -self.alpha;
                let [$($read,)+ $written] = &mut self.arrays;
                let arguments = $kernel {
                    $($read,)+
                    $written,
                    alpha: self.alpha,
                    n: self.n,
                };
                self.graph.update(self.node, cover(self.n), arguments)?;
                Ok(())
            }
        }
    };
}

update!(empty4, 2: x; y);
update!(empty10, 8: a, b, c, d, e, f, g; y);

fn bare(scene: &Scene, kernel: Kernel, form: Form) -> Result<BareUpdate, Box<dyn Error>> {
    let functions = Functions::new()?;
    let function = scene.function(kernel.entry())?;
    let (params, alpha) = KernelNodeParams::new(&function, scene, kernel, form)?;
    let mut graph = ptr::null_mut();
    // SAFETY: `graph` takes the answer.
    unsafe { (functions.create)(&raw mut graph, 0) }.result()?;
    let mut last: CUgraphNode = ptr::null_mut();
    for index in 0..NODES {
        let before = last;
        // SAFETY: `last` takes the answer; what is before is of the graph; the parameters are those of
        // the kernel, whose module and arrays are kept for the rest of the process.
        unsafe {
            (functions.add_kernel_node)(
                &raw mut last,
                graph,
                &raw const before,
                index.min(1),
                &raw const params,
            )
        }
        .result()?;
    }
    std::mem::forget(function);
    let mut exec = ptr::null_mut();
    // SAFETY: `exec` takes the answer.
    unsafe { (functions.instantiate)(&raw mut exec, graph, 0) }.result()?;
    // SAFETY: the graph is of the stream's context, which is current.
    unsafe { (functions.launch)(exec, scene.stream().cu_stream()) }.result()?;
    Ok(BareUpdate {
        functions,
        exec,
        node: last,
        params,
        alpha,
    })
}

impl Contender for BareReplay {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        // SAFETY: the graph and what it uses are kept for the rest of the process.
        let code = unsafe { (self.functions.launch)(self.exec, self.stream.cu_stream()) };
        code.result().map_err(Into::into)
    }
}

impl Contender for Replay {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        self.graph.launch(&self.stream)?;
        Ok(())
    }
}

impl Contender for BareUpdate {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        // SAFETY: it is kept for the rest of the process, and nobody else has it.
        let alpha = unsafe { &mut *self.alpha };
        *alpha = -*alpha;
        // SAFETY: as for `BareReplay`; the parameters are those of the node's kernel.
        let code =
            unsafe { (self.functions.set_params)(self.exec, self.node, &raw const self.params) };
        code.result().map_err(Into::into)
    }
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
struct KernelNodeParams {
    function: CUfunction,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_mem_bytes: c_uint,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: *mut c_void,
    context: CUcontext,
}

impl KernelNodeParams {
    /// With what the parameters point to kept for the rest of the process, and where the factor is
    /// among that.
    fn new(
        function: &CudaFunction,
        scene: &Scene,
        kernel: Kernel,
        form: Form,
    ) -> Result<(KernelNodeParams, *mut f32), Box<dyn Error>> {
        let read = kernel.arrays() - 1;
        let prepared = Prepared::new(function, scene.stream(), scene.slices()?, read, form);
        let Leaked {
            kernel_params,
            extra,
            alpha,
        } = prepared.leak();
        let params = KernelNodeParams {
            function: function.cu_function(),
            grid: [BLOCKS, 1, 1],
            block: [THREADS, 1, 1],
            shared_mem_bytes: 0,
            params: kernel_params,
            extra,
            kernel: ptr::null_mut(),
            context: ptr::null_mut(),
        };
        Ok((params, alpha))
    }
}

/// The driver's functions, resolved once.
struct Functions {
    create: unsafe extern "C" fn(*mut CUgraph, c_uint) -> CUresult,
    add_kernel_node: unsafe extern "C" fn(
        *mut CUgraphNode,
        CUgraph,
        *const CUgraphNode,
        usize,
        *const KernelNodeParams,
    ) -> CUresult,
    instantiate: unsafe extern "C" fn(*mut CUgraphExec, CUgraph, u64) -> CUresult,
    launch: unsafe extern "C" fn(CUgraphExec, CUstream) -> CUresult,
    set_params: unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const KernelNodeParams) -> CUresult,
}

impl Functions {
    fn new() -> Result<Functions, Box<dyn Error>> {
        // SAFETY: opening the driver runs its initialisers, which every CUDA program does.
        let library = unsafe { Library::new("libcuda.so.1") }?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type of the field it is assigned to is the function's in cuda.h.
                *unsafe { library.get($name) }?
            };
        }
        let functions = Functions {
            create: function!(b"cuGraphCreate"),
            add_kernel_node: function!(b"cuGraphAddKernelNode_v2"),
            instantiate: function!(b"cuGraphInstantiateWithFlags"),
            launch: function!(b"cuGraphLaunch"),
            set_params: function!(b"cuGraphExecKernelNodeSetParams_v2"),
        };
        // The driver stays loaded, and the functions with it.
        std::mem::forget(library);
        Ok(functions)
    }
}
