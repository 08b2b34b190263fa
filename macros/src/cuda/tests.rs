//! What is read of declarations as people write them.

use super::*;

fn only(text: &str) -> Kernel {
    let source = read(text);
    assert_eq!(source.kernels.len(), 1, "{text}: {:?}", source.kernels);
    source.kernels.into_iter().next().unwrap()
}

/// `name: type` of each parameter.
fn params(text: &str) -> Vec<String> {
    let kernel = only(text);
    let params = kernel.params.unwrap_or_else(|| panic!("{text}: unknown"));
    params
        .iter()
        .map(|param| {
            format!(
                "{}: {}",
                param.name.as_deref().unwrap_or("_"),
                show(&param.ty)
            )
        })
        .collect()
}

fn show(ty: &Type) -> String {
    match ty {
        Type::Void => "void".into(),
        Type::Scalar(Scalar::Int { size, signed }) => {
            format!("{}{}", if *signed { 'i' } else { 'u' }, size * 8)
        }
        Type::Scalar(Scalar::Float { size }) => format!("f{}", size * 8),
        Type::Scalar(scalar) => format!("{scalar:?}"),
        Type::Vector(vector) => vector.name.into(),
        Type::Pointer(pointee) => {
            format!(
                "*{}{}",
                if pointee.is_const { "const " } else { "" },
                show(&pointee.ty)
            )
        }
        Type::Array(element, count) => format!("[{}; {count:?}]", show(element)),
        Type::Struct(structure) => format!("struct {}", structure.name),
        Type::Enum(enumeration) => {
            format!("enum {} {:?}", enumeration.name, enumeration.underlying)
        }
        Type::Named(name) => name.clone(),
        Type::Function(function) => {
            let params: Vec<String> = function.params.iter().map(show).collect();
            format!("{}({})", show(&function.result), params.join(", "))
        }
        Type::Unknown => "?".into(),
    }
}

fn one(parameter: &str) -> String {
    params(&format!("__global__ void k({parameter});")).join(", ")
}

#[test]
fn finds_a_kernel_however_it_is_qualified() {
    for text in [
        "__global__ void k(int n) {}",
        "extern \"C\" __global__ void k(int n) { if (n) { n = 1; } }",
        "void __global__ k(int n);",
        "static __global__ void k(int n) {}",
        "extern \"C\" { __global__ void k(int n) {} }",
        "__global__ void __launch_bounds__(256, 2) k(int n) {}",
        "__launch_bounds__(256) __global__ void k(int n) {}",
        "__global__ __launch_bounds__(MAX(1, 2)) __cluster_dims__(2, 1, 1) void k(int n) {}",
        "__global__ void __block_size__((64, 1, 1), (2, 1, 1)) k(int n) {}",
        "[[maybe_unused]] __global__ void k(int n) {}",
        "__global__ void __attribute__((used)) k(int n) {}",
        "#define KERNEL extern \"C\" __global__ void\nKERNEL k(int n) {}",
        "#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(256) k(int n) {}",
        "float f() { return 1.0f; }\nint x = 3, y[] = {1, 2};\n__global__ void k(int n) {}",
        "struct S { void f() const { int a = 1; } } s; __global__ void k(int n) {}",
        "template <int A, class B = X<int>> struct T { B b; };\n__global__ void k(int n) {}",
        "__global__ void k(int n)\n#ifdef FAST\n{ fast(); }\n#else\n{ slow(); }\n#endif",
        "#if 0\n__global__ void k(float n) {}\n#endif\n__global__ void k(int n) {}",
        "// __global__ void k(float);\n/* __global__ void k(); */ __global__ void k(int n) {}",
        "const char* s = \"__global__ void k();\"; __global__ void k(int n) {}",
    ] {
        assert_eq!(only(text).name, "k", "{text}");
        assert_eq!(params(text), ["n: i32"], "{text}");
    }
}

#[test]
fn namespaces_are_part_of_the_name() {
    for (text, path) in [
        (
            "namespace a { namespace b { __global__ void k(); } }",
            "a::b::k",
        ),
        ("namespace a::b { __global__ void k(); }", "a::b::k"),
        ("namespace { __global__ void k(); }", "k"),
        ("inline namespace v1 { __global__ void k(); }", "v1::k"),
        ("namespace a { } __global__ void k();", "k"),
        (
            "namespace a { void f() {} struct S {}; } namespace b { __global__ void k(); }",
            "b::k",
        ),
        ("__global__ void a::k();", "a::k"),
        ("namespace a { __global__ void b::k(); }", "a::b::k"),
        ("namespace x = y; __global__ void k();", "k"),
    ] {
        assert_eq!(only(text).path(), path, "{text}");
    }
}

#[test]
fn parameters_have_pointee_const_and_sign() {
    for (written, read) in [
        ("unsigned long long int n", "n: u64"),
        ("long unsigned n", "n: u64"),
        ("std::size_t n", "n: u64"),
        ("::uint8_t n", "n: u8"),
        ("char c", "c: Char"),
        ("signed char c", "c: i8"),
        ("const int n", "n: i32"),
        ("float* x", "x: *f32"),
        ("const float* __restrict__ x", "x: *const f32"),
        ("float const *const x", "x: *const f32"),
        ("const float* const* x", "x: *const *const f32"),
        ("float* const* x", "x: *const *f32"),
        ("float** x", "x: **f32"),
        ("const float& x", "x: *const f32"),
        ("float x[]", "x: *f32"),
        ("const float x[16]", "x: *const f32"),
        ("float x[4][3]", "x: *[f32; Some(3)]"),
        ("float (*x)[3]", "x: *?"),
        ("int (*f)(int, float)", "f: *i32(i32, f32)"),
        ("float (*)(const float*, T)", "_: *f32(*const f32, T)"),
        ("void (*f)(void)", "f: *void()"),
        (
            "double* (*const f)(float (*)(float), int[4])",
            "f: **f64(*f32(f32), *i32)",
        ),
        ("void (&f)(int) noexcept", "f: *void(i32)"),
        ("int (**f)(int)", "f: *?"),
        ("int (*f[3])(int)", "f: *?"),
        ("int T::* f", "_: ?"),
        ("void* p", "p: *void"),
        ("volatile int* v", "v: *i32"),
        ("const __grid_constant__ Config c", "c: Config"),
        ("struct Config c", "c: Config"),
        ("bool", "_: Bool"),
        ("bool invert = false", "invert: Bool"),
        ("float scale = f(1, 2)", "scale: f32"),
        ("__half h", "h: Half"),
        ("const __nv_bfloat16* h", "h: *const Bfloat16"),
        ("float4 v", "v: float4"),
        ("const cuDoubleComplex* z", "z: *const double2"),
        ("std::vector<int> v", "v: ?"),
        ("thrust::complex<float>* v", "v: *?"),
        ("unsigned __int128 big", "big: u128"),
        ("decltype(1 + 2) x", "x: ?"),
        ("[[maybe_unused]] int x", "x: i32"),
        (
            "const float *in /* rows, cols */, float *out // row-major\n",
            "in: *const f32, out: *f32",
        ),
        ("std::array<int, 3> a, int b", "a: ?, b: i32"),
    ] {
        assert_eq!(one(written), read, "{written}");
    }
    assert_eq!(params("__global__ void k(void);"), [""; 0]);
    assert_eq!(params("__global__ void k();"), [""; 0]);
}

#[test]
fn what_cannot_be_told_is_unknown() {
    for text in [
        "__global__ void k(int n = a < b, int m = c > d);",
        "template <typename... T> __global__ void k(T... all);",
    ] {
        assert!(only(text).params.is_none(), "{text}");
    }
    for (text, ty) in [
        ("#define T(x) x*\n__global__ void k(T(float) v);", "v: ?"),
        (
            "#ifdef D\ntypedef double real;\n#else\ntypedef float real;\n#endif\n__global__ void k(real v);",
            "v: ?",
        ),
        (
            "#ifdef D\n#define real double\n#else\n#define real float\n#endif\n__global__ void k(const real* v);",
            "v: *const ?",
        ),
        (
            "#ifndef real\n#define real float\n#endif\n__global__ void k(real v);",
            "v: ?",
        ),
        (
            "template <class T> struct S {};\n__global__ void k(S<int> v);",
            "v: ?",
        ),
        (
            "template <typename T> __global__ void k(const T* v);",
            "v: *const ?",
        ),
        (
            "template <typename T, int N> __global__ void k(T v);",
            "v: ?",
        ),
        ("using ns::real; __global__ void k(real v);", "v: ?"),
    ] {
        assert_eq!(params(text).join(", "), ty, "{text}");
    }
    assert!(read("KERNELS(float)\n#include \"more.cuh\"").open);
    assert!(read("#define K(T) __global__ void k(T* x) {}\nK(float)").open);
    assert!(!read("#include <cuda_fp16.h>\n__global__ void k() {}").open);
}

#[test]
fn types_of_the_same_text_are_followed() {
    for (text, ty) in [
        (
            "typedef float real; __global__ void k(const real* v);",
            "v: *const f32",
        ),
        ("using real = double; __global__ void k(real v);", "v: f64"),
        (
            "typedef const float* in; __global__ void k(in v);",
            "v: *const f32",
        ),
        (
            "typedef float real, *reals; __global__ void k(real v);",
            "v: f32",
        ),
        (
            "#ifdef RTC\ntypedef long int64_t;\n#else\n#include <cstdint>\n#endif\n__global__ void k(int64_t v);",
            "v: i64",
        ),
        (
            "struct P { int a; }; __global__ void k(P v);",
            "v: struct P",
        ),
        (
            "typedef struct { int a; } P; __global__ void k(P* v);",
            "v: *struct ",
        ),
        (
            "enum E : unsigned char { a, b }; __global__ void k(E v);",
            "v: enum E Some(Int { size: 1, signed: false })",
        ),
        (
            "enum class E { a }; __global__ void k(E v);",
            "v: enum E None",
        ),
        (
            "namespace a { struct P { int a; }; __global__ void k(P v); }",
            "v: struct P",
        ),
        (
            "namespace a { struct P { int a; }; } __global__ void k(a::P v);",
            "v: struct P",
        ),
        (
            "namespace a { struct P { int a; }; } __global__ void k(P v);",
            "v: P",
        ),
        ("struct P; __global__ void k(P* v);", "v: *P"),
    ] {
        assert_eq!(params(text).join(", "), ty, "{text}");
    }
}

/// `offset name: type` of each field, and the size.
fn layout(text: &str) -> Option<(Vec<String>, usize, usize)> {
    let kernel = only(&format!("{text} __global__ void k(S s);"));
    let params = kernel.params.unwrap();
    let Type::Struct(structure) = &params[0].ty else {
        panic!("{text}: {:?}", params[0].ty)
    };
    let (offsets, _) = structure.offsets()?;
    let layout = structure.layout()?;
    let fields = structure.fields.as_ref()?.iter().zip(offsets);
    let fields =
        fields.map(|(field, offset)| format!("{offset} {}: {}", field.name, show(&field.ty)));
    Some((fields.collect(), layout.size, layout.align))
}

#[test]
fn structs_are_laid_out() {
    for (text, fields, size, align) in [
        (
            "struct S { int id; float value; };",
            "0 id: i32, 4 value: f32",
            8,
            4,
        ),
        (
            "struct S { double d; char c; };",
            "0 d: f64, 8 c: Char",
            16,
            8,
        ),
        (
            "struct S { char c; short s, t; float* p; };",
            "0 c: Char, 2 s: i16, 4 t: i16, 8 p: *f32",
            16,
            8,
        ),
        ("struct __align__(16) S { float f; };", "0 f: f32", 16, 16),
        ("struct S { int v[5]; };", "0 v: [i32; Some(5)]", 20, 4),
        (
            "struct P { int a; }; struct S { P p; float4 v; };",
            "0 p: struct P, 16 v: float4",
            32,
            16,
        ),
        (
            "struct S { S(int a) : x(a) {} int get() const { return x; } int x; static int y; };",
            "0 x: i32",
            4,
            4,
        ),
        (
            "class S { public: int a = 1, b = 2; private: float c; };",
            "0 a: i32, 4 b: i32, 8 c: f32",
            12,
            4,
        ),
        ("struct S { float *x, y; };", "0 x: *f32, 8 y: f32", 16, 8),
        ("struct S {};", "", 1, 1),
    ] {
        let (found, found_size, found_align) = layout(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.join(", "), fields, "{text}");
        assert_eq!((found_size, found_align), (size, align), "{text}");
    }
    for unknown in [
        "struct S { unsigned a : 3, b : 29; };",
        "struct B { int a; }; struct S : B { char c; };",
        "union S { int a; float b; };",
        "struct __attribute__((packed)) S { char a; int b; };",
        "struct S { virtual void f(); int a; };",
        "struct S { std::array<int, 2> a; };",
        "struct S { int (*f)(int); };",
        "#pragma pack(1)\nstruct S { char a; int b; };",
        "struct S { alignas(16) float a; };",
        "struct S { int a[N]; };",
    ] {
        assert_eq!(layout(unknown), None, "{unknown}");
    }
}

#[test]
fn overloads_and_instances_are_told_apart() {
    let source = read(
        "__global__ void k(float* y) {}\n__global__ void k(double* y) {}\n
         template <typename T> __global__ void t(T* x) {}\ntemplate __global__ void t<float>(float*);
         template <> __global__ void t<int>(int* x) {}",
    );
    let shown: Vec<String> = source.kernels.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "k(float*)",
            "k(double*)",
            "t(T*)",
            "t<float>(float*)",
            "t<int>(int*)"
        ]
    );
    assert_eq!(source.kernels[1].line, 2);
}

#[test]
fn any_text_is_read_to_its_end() {
    let source = "template <typename T> __global__ void k(const T* x[3], int n = 4) { x[0] = {1}; } struct S { int a; };";
    for end in 0..source.len() {
        let _ = read(&source[..end]);
        let _ = read(&source[end..]);
    }
    for text in [
        "{{{{",
        "}}}}",
        "((((",
        "<<<<",
        ">>>>",
        "#if\n#else\n#endif\n#endif\n#else",
        "struct",
        "struct {",
        "enum",
        "typedef",
        "using",
        "namespace",
        "extern \"C\"",
        "template",
        "template <",
        "__global__",
        "__global__ void",
        "__global__ void k(",
        "__global__ (",
        "struct S { int",
        "struct S { public",
        "using a",
        "typedef struct {",
        "typedef ,",
        "#define",
        "#undef",
        "#include",
        "namespace a = b",
    ] {
        let _ = read(text);
    }
}

#[test]
fn time_is_in_proportion_to_the_text() {
    let deep = "{".repeat(100_000)
        + &"namespace a {".repeat(20_000)
        + &"(".repeat(100_000)
        + &"struct S {".repeat(1000);
    let started = std::time::Instant::now();
    let _ = read(&deep);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// `name: type` of each variable, `const` where it is.
fn variables(text: &str) -> Vec<String> {
    let source = read(text);
    let variables = source.variables.iter();
    variables
        .map(|one| {
            let constness = if one.is_const { "const " } else { "" };
            format!("{}: {constness}{}", one.path(), show(&one.ty))
        })
        .collect()
}

#[test]
fn variables_of_the_device_are_found() {
    for (text, found) in [
        ("__constant__ float taps[5];", "taps: [f32; Some(5)]"),
        ("static __device__ const int n = 3;", "n: const i32"),
        ("__device__ constexpr int n{3};", "n: const i32"),
        (
            "__constant__ float4 a[2] = {{1, 2, 3, 4}};",
            "a: [float4; Some(2)]",
        ),
        ("namespace math { __device__ unsigned n; }", "math::n: u32"),
        ("__managed__ double x;", "x: f64"),
        ("struct P { int a; }; __constant__ P p;", "p: struct P"),
        (
            "__device__ alignas(16) float a[4][4];",
            "a: [[f32; Some(4)]; Some(4)]",
        ),
        ("__constant__ real r;", "r: real"),
    ] {
        assert_eq!(variables(text), [found], "{text}");
    }
}

#[test]
fn what_is_no_variable_of_one_type_is_left_out() {
    for text in [
        "extern __constant__ float taps[5];",
        "__device__ float f(int n) { return n; }",
        "__device__ float a, b;",
        "int host;",
        "#ifdef X\n__device__ int n;\n#else\n__device__ long n;\n#endif",
    ] {
        assert_eq!(variables(text), [""; 0], "{text}");
    }
}
