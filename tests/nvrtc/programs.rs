//! Does what NVRTC compiles run, by the names and types that it is declared with?

use gridcall::{
    Float4, KernelArg, Shaped, cover, kernel,
    nvrtc::{Cache, NameExpression, Program},
};

use crate::folder::Folder;

/// `physics::Particle`
#[derive(Clone, Copy, Debug, PartialEq, KernelArg)]
#[repr(C)]
#[kernel_arg(name = "physics::Particle")]
struct Particle {
    x: f32,
    y: f32,
    id: i32,
}

// SAFETY: `repr(C)` of scalars that are valid on the device.
unsafe impl gridcall::cudarc::driver::DeviceRepr for Particle {}
#[kernel]
unsafe extern "C" {
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn plain(x: &[f32], y: &mut [f32], n: u32);

    #[requires(all.len() >= n)]
    #[name("physics::drift<physics::Particle>")]
    safe fn drift(all: &mut [Particle], by: f32, n: u32);

    #[requires(y.len() >= n)]
    #[instances(T = { f32 => "fill<float, 4>", i32 => "fill<int, -1>" })]
    safe fn fill<T>(y: &mut [T], value: T, n: u32);

    #[requires(y.len() >= n)]
    #[instances(T = { f32, f64, u8, i64 })]
    safe fn scale<T>(y: &mut [T], by: T, n: u32);

    #[requires(y.len() >= n)]
    #[name("tools::copy")]
    #[instances(T = { f32, Float4, Particle })]
    safe fn copy<T>(x: &[T], y: &mut [T], n: u32);
}

/// Functions of the device, and a kernel that calls them.
mod calling {
    use gridcall::{DeviceFn, kernel};

    #[kernel]
    unsafe extern "C" {
        pub(super) static op_twice: DeviceFn<fn(f32) -> f32>;
        #[requires(y.len() >= n)]
        pub(super) safe fn map(op: DeviceFn<fn(f32) -> f32>, y: &mut [f32], n: u32);
    }
}

/// The same, with another type behind a name.
mod calling_others {
    use gridcall::{DeviceFn, kernel};

    type Op = fn(i32) -> f32;

    #[kernel]
    unsafe extern "C" {
        pub(super) fn map(op: DeviceFn<Op>, y: &mut [f32], n: u32);
    }
}

const MAP: &str = "
    typedef float (*Op)(float);
    __device__ float twice(float x) { return 2.0f * x; }
    __device__ Op op_twice = twice;
    __global__ void map(Op op, float* y, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = op(y[i]);
    }";

const SCALE: &str = "
    template <class T> __global__ void scale(T* y, T by, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] *= by;
    }";

const COPY: &str = "
    namespace physics { struct Particle { float x, y; int id; }; }
    namespace tools {
    template <class T> __global__ void copy(const T* x, T* y, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i];
    }
    }";

/// The file `particles.cu`, with its headers where it looks for them.
fn particles(folder: &Folder) -> Program {
    folder.write("kernels/particles.cu", include_str!("kernels/particles.cu"));
    folder.write("kernels/settings.cuh", include_str!("kernels/settings.cuh"));
    folder.write("include/twice.cuh", include_str!("include/twice.cuh"));
    Program::from_file(folder.path("kernels/particles.cu"))
        .include_path(folder.path("include"))
        .cache(Cache::off())
}

#[test]
fn a_template_runs_for_each_type() {
    nvrtc!();
    let device = device!();
    let module = Program::new(SCALE)
        .instance::<scale, f32>()
        .instance::<scale, f64>()
        .instance::<scale, u8>()
        .instance::<scale, i64>()
        .cache(Cache::off())
        .load(&device)
        .unwrap();
    assert_eq!(module.entries().unwrap().len(), 4);
    let stream = device.default_stream();
    macro_rules! runs {
        ($($ty:ty),+) => {$({
            // SAFETY: the source above holds the kernel that is declared.
            let kernel = unsafe { scale::load_from::<$ty>(&module) }.unwrap();
            let [three, five, fifteen] = [3_u8, 5, 15].map(<$ty>::from);
            let mut y = stream.clone_htod(&[three; 100]).unwrap();
            let arguments = scale { y: &mut y, by: five, n: 99 };
            kernel.launch(&stream, cover(99), arguments.arguments()).unwrap();
            let y = stream.clone_dtoh(&y).unwrap();
            assert_eq!(y[..99], [fifteen; 99]);
            assert_eq!(y[99], three);
        })+};
    }
    runs!(f32, f64, u8, i64);
}

#[test]
#[allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "what is taken from the modules is taken at once, for one reason"
)]
fn a_function_of_the_source_is_passed_to_its_kernels() {
    nvrtc!();
    let device = device!();
    let load = || {
        Program::new(MAP)
            .cache(Cache::off())
            .kernel::<calling::map>()
    };
    let (one, other) = (load().load(&device).unwrap(), load().load(&device).unwrap());
    // SAFETY: the source above holds what is declared.
    let (map, twice, foreign) = unsafe {
        (
            calling::map::load_from(&one).unwrap(),
            calling::op_twice.load_from(&one).unwrap(),
            calling::op_twice.load_from(&other).unwrap(),
        )
    };
    let stream = device.default_stream();
    let (twice, foreign) = (twice.get(&stream).unwrap(), foreign.get(&stream).unwrap());
    let mut y = stream.clone_htod(&[3.0_f32; 9]).unwrap();
    let arguments = calling::map {
        op: &twice,
        y: &mut y,
        n: 9,
    };
    map.launch(&stream, cover(9), arguments).unwrap();
    let arguments = calling::map {
        op: &foreign,
        y: &mut y,
        n: 9,
    };
    let error = map.launch(&stream, cover(9), arguments).unwrap_err();
    assert!(
        error.to_string().contains("another loading of it"),
        "{error}"
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [6.0; 9]);

    // SAFETY: what differs is not loaded.
    let error = unsafe { calling_others::map::load_from(&one) }
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("parameter 0, `op`, of `map` is `DeviceFn<Op>`: parameter 0 of the function is `i32`, but the source declares `float`"),
        "{error}"
    );
}

#[test]
fn types_of_cuda_and_of_the_source_are_arguments_of_templates() {
    nvrtc!();
    let device = device!();
    let module = Program::new(COPY)
        .instance::<copy, f32>()
        .instance::<copy, Float4>()
        .instance::<copy, Particle>()
        .cache(Cache::off())
        .load(&device)
        .unwrap();
    // SAFETY: the source above holds the kernel that is declared.
    let of_floats = unsafe { copy::load_from::<Float4>(&module) }.unwrap();
    // SAFETY: as above.
    let of_structs = unsafe { copy::load_from::<Particle>(&module) }.unwrap();
    let stream = device.default_stream();
    let floats = [Float4::new(1.0, 2.0, 3.0, 4.0); 7];
    let x = stream.clone_htod(&floats).unwrap();
    let mut y = stream.clone_htod(&[Float4::default(); 7]).unwrap();
    let arguments = copy {
        x: &x,
        y: &mut y,
        n: 7,
    }
    .arguments();
    of_floats.launch(&stream, cover(7), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), floats);
    let structs = [Particle {
        x: 1.0,
        y: 2.0,
        id: 3,
    }; 5];
    let x = stream.clone_htod(&structs).unwrap();
    let mut y = stream
        .clone_htod(
            &[Particle {
                x: 0.0,
                y: 0.0,
                id: 0,
            }; 5],
        )
        .unwrap();
    let arguments = copy {
        x: &x,
        y: &mut y,
        n: 5,
    }
    .arguments();
    of_structs.launch(&stream, cover(5), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), structs);
}

#[test]
fn a_file_with_headers_and_macros_runs() {
    nvrtc!();
    let folder = Folder::new(this_test!());
    let device = device!();
    let stream = device.default_stream();
    let all: Vec<Particle> = (0..6).map(|id| Particle { x: 0.0, y: 0.0, id }).collect();
    for (program, every) in [
        (particles(&folder), 2),
        (particles(&folder).define("EVERY", 3), 3),
    ] {
        let module = program.kernel::<drift>().load(&device).unwrap();
        // SAFETY: the file holds the kernel that is declared.
        let kernel = unsafe { drift::load_from(&module) }.unwrap();
        let mut moved = stream.clone_htod(&all).unwrap();
        let arguments = drift {
            all: &mut moved,
            by: 0.5,
            n: 6,
        };
        kernel.launch(&stream, cover(6), arguments).unwrap();
        let expected: Vec<f32> = (0..6)
            .map(|id| if id % every == 0 { 1.0 } else { 0.0 })
            .collect();
        let moved = stream.clone_dtoh(&moved).unwrap();
        assert_eq!(moved.iter().map(|one| one.x).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn instances_named_as_text_run() {
    nvrtc!();
    let folder = Folder::new(this_test!());
    let device = device!();
    let module = particles(&folder)
        .instance::<fill, f32>()
        .instance::<fill, i32>()
        .load(&device)
        .unwrap();
    // SAFETY: the file holds the kernel that is declared.
    let kernel = unsafe { fill::load_from::<i32>(&module) }.unwrap();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[0; 10]).unwrap();
    let arguments = fill {
        y: &mut y,
        value: 8,
        n: 10,
    }
    .arguments();
    kernel.launch(&stream, cover(10), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7; 10]);
}

/// A kernel without `extern "C"` has another name in the PTX, which the compiler tells.
#[test]
fn a_kernel_that_was_not_named_is_taken_too() {
    nvrtc!();
    let folder = Folder::new(this_test!());
    let device = device!();
    let module = particles(&folder).load(&device).unwrap();
    assert_eq!(module.entries().unwrap(), ["_Z5plainPKfPfj"]);
    // SAFETY: the file holds the kernel that is declared.
    let kernel = unsafe { plain::load_from(&module) }.unwrap();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.5_f32; 10]).unwrap();
    let mut y = stream.clone_htod(&[0.0_f32; 10]).unwrap();
    let arguments = plain {
        x: &x,
        y: &mut y,
        n: 10,
    };
    kernel.launch(&stream, cover(10), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0; 10]);
    // An instance that nobody asked for is not in the module.
    // SAFETY: as above.
    let error = unsafe { drift::load_from(&module) }
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("has no `_ZN7physics5driftINS_8ParticleEEEvPT_fj`, as nobody asked for that instance; add the kernel"),
        "{error}"
    );
}

#[test]
fn lowered_names_are_told() {
    nvrtc!();
    let folder = Folder::new(this_test!());
    let of_types = NameExpression::template("fill").ty::<f32>().value(4_u64);
    let of_text = NameExpression::from("physics::drift<physics::Particle>");
    let compiled = particles(&folder)
        .name_expression(of_types.clone())
        .name_expression("physics::drift<physics::Particle>")
        .name_expression("fill<float, 4>")
        .instance::<fill, f32>()
        .instance::<fill, f32>()
        .compile_for("compute_75")
        .unwrap();
    assert_eq!(
        compiled.lowered_name(&of_types),
        Some("_Z4fillIfLi4EEvPT_S0_j")
    );
    assert_eq!(
        compiled.lowered_name(&of_text),
        Some("_ZN7physics5driftINS_8ParticleEEEvPT_fj")
    );
    assert_eq!(compiled.lowered_name(&"other".into()), None);
    assert!(compiled.ptx().contains(".entry _Z4fillIfLi4EEvPT_S0_j("));
}

#[test]
fn a_header_in_memory_is_found() {
    nvrtc!();
    let compiled = Program::new(
        "#include \"sizes.h\"\n#include <deep/more.h>\n__global__ void k(float* y) { *y = SIZE; }",
    )
    .header("sizes.h", "#define SIZE 3")
    .header("deep/more.h", "#if SIZE != 3\n#error no size\n#endif")
    .cache(Cache::off())
    .compile_for("compute_75");
    assert!(compiled.unwrap().ptx().contains("1077936128"));
}

#[test]
fn the_header_of_strided_arrays_is_in_the_crate() {
    #[kernel]
    unsafe extern "C" {
        #[requires(y.extent(0) == x.extent(1), y.extent(1) == x.extent(0))]
        safe fn turn(x: Strided<f32, 2>, y: StridedMut<f32, 2>);
    }

    nvrtc!();
    let device = device!();
    let module = Program::new(
        "#include <gridcall.cuh>
        __global__ void turn(gridcall::strided<const float, 2> x, gridcall::strided<float, 2> y) {
            unsigned i = threadIdx.y, j = threadIdx.x;
            if (i < x.extent(0) && j < x.extent(1)) y(j, i) = x(i, j);
        }",
    )
    .header("gridcall.cuh", gridcall::CUDA_HEADER)
    .kernel::<turn>()
    .cache(Cache::off())
    .compile(&device)
    .unwrap()
    .load(&device)
    .unwrap();
    // SAFETY: the source above holds the kernel that is declared; it is launched in one block.
    let turn_over = unsafe { turn::load_from(&module) }.unwrap();
    let stream = device.default_stream();
    let x = stream
        .clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])
        .unwrap();
    let mut y = stream.alloc_zeros::<f32>(6).unwrap();
    let arguments = turn {
        x: &Shaped::new(&x, [2, 3]),
        y: &mut Shaped::new(&mut y, [3, 2]),
    };
    turn_over.launch(&stream, (1, (3, 2)), arguments).unwrap();
    let turned = stream.clone_dtoh(&y).unwrap();
    assert_eq!(turned, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn a_real_architecture_has_machine_code() {
    nvrtc!();
    let program = Program::new(SCALE)
        .name_expression("scale<float>")
        .cache(Cache::off());
    let virtually = program.compile_for("compute_80").unwrap();
    assert_eq!((virtually.cubin(), virtually.arch()), (None, "compute_80"));
    assert!(virtually.ptx().contains(".target sm_80"));
    let really = program.compile_for("sm_80").unwrap();
    assert!(really.cubin().unwrap().starts_with(b"\x7fELF"));
    assert!(really.ptx().contains(".entry _Z5scaleIfEvPT_S0_j("));
}

#[test]
fn machine_code_runs() {
    nvrtc!();
    let device = device!();
    if device.name().unwrap().contains("emulated") {
        println!("not run, as an emulator runs no machine code");
        return;
    }
    let (major, minor) = device.compute_capability().unwrap();
    let compiled = Program::new(SCALE)
        .instance::<scale, f32>()
        .cache(Cache::off())
        .compile_for(&format!("sm_{}", major * 10 + minor))
        .unwrap();
    let module = compiled.load(&device).unwrap();
    // SAFETY: the source above holds the kernel that is declared.
    let kernel = unsafe { scale::load_from::<f32>(&module) }.unwrap();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[3.0_f32; 100]).unwrap();
    let arguments = scale {
        y: &mut y,
        by: 5.0,
        n: 100,
    };
    kernel
        .launch(&stream, cover(100), arguments.arguments())
        .unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [15.0; 100]);
}

#[test]
fn the_device_decides_the_architecture() {
    nvrtc!();
    let device = device!();
    let compiled = Program::new(SCALE)
        .cache(Cache::off())
        .compile(&device)
        .unwrap();
    let (major, minor) = device.compute_capability().unwrap();
    let number = compiled.arch().split('_').nth(1).unwrap();
    assert!(
        number.parse::<i32>().unwrap() <= major * 10 + minor,
        "{compiled:?}"
    );
}
