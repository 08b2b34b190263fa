//! Writes the C++ that holds what declarations claim.
//!
//! Each claim is an instance of a template that fails to compile where it does not hold, and whose
//! first argument is its number: so that a compiler's words lead back to the claim.

use std::fmt::Write;

use crate::{
    declaration::{Declaration, Param, Pass, StaticDeclaration},
    layout::{ArgLayout, Field},
    signature::Signature,
    verify::log::DECLARES,
};

/// A text to stand behind the source, and what its claims say.
pub(super) struct Claims {
    pub(super) text: String,
    pub(super) claims: Vec<Claim>,
}

/// What makes claims.
#[derive(Clone)]
pub(crate) enum Subject<'a> {
    Kernel(Named<'a>),
    Variable(&'a StaticDeclaration),
}

/// A declaration, and its kernel's name in C++.
#[derive(Clone)]
pub(crate) struct Named<'a> {
    pub(crate) declaration: &'a Declaration,
    pub(crate) name: String,
}

impl Named<'_> {
    /// The type of a pointer to the kernel.
    pub(crate) fn ty(&self) -> String {
        let Named { declaration, name } = self;
        match declaration.cpp.params {
            // Of overloads, the one that was compiled.
            Some(params) => format!("decltype(static_cast<void (*)({params})>(&{name}))"),
            None => format!("decltype(&{name})"),
        }
    }
}

/// What is said if a claim does not hold.
pub(super) struct Claim {
    /// The declaration that makes it.
    pub(super) declaration: usize,
    /// Whose it is, and what it says.
    pub(super) subject: String,
    /// How the kernel differs, in front of what there is in its place.
    differs: &'static str,
}

const NO_FIELD: &str = "the struct in the source has no such field";

/// In front of what the compiler says.
const SAYS: &str = "the compiler says";

impl Claim {
    pub(super) fn said(&self, actual: Option<&str>) -> String {
        let Claim {
            subject, differs, ..
        } = self;
        match actual {
            _ if *differs == NO_FIELD => format!("{subject}, but {differs}"),
            Some(actual) => format!("{subject}, but {differs} `{actual}`"),
            None => format!("{subject}, but {differs} another"),
        }
    }
}

const TEMPLATES: &str = "
namespace gridcall_verify {
typedef decltype(sizeof 0) count;
template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
template <class T> struct plain { typedef T type; };
template <class T> struct plain<const T> : plain<T> {};
template <class T> struct plain<volatile T> : plain<T> {};
template <class T> struct plain<const volatile T> : plain<T> {};
template <class T> struct element { typedef typename plain<T>::type type; };
template <class T> struct element<T[]> : element<T> {};
template <class T, count N> struct element<T[N]> : element<T> {};
template <class T> struct pointee { static constexpr bool value = false; typedef T type; };
template <class T> struct pointee<T*> { static constexpr bool value = true; typedef T type; };
template <class T> struct pointee<T&> { static constexpr bool value = true; typedef T type; };
template <bool...> struct any { static constexpr bool value = false; };
template <bool... More> struct any<true, More...> { static constexpr bool value = true; };
template <bool... More> struct any<false, More...> : any<More...> {};
template <class T> struct is_const { static constexpr bool value = false; };
template <class T> struct is_const<const T> { static constexpr bool value = true; };
template <class T> struct is_const<const volatile T> { static constexpr bool value = true; };
template <class F> struct variable_of;
template <class T> struct variable_of<T& ()> { typedef T type; };
template <class T> struct any_const : is_const<T> {};
template <class T> struct any_const<T[]> : any_const<T> {};
template <class T, count N> struct any_const<T[N]> : any_const<T> {};
template <int I, class F> struct param;
template <class H, class... T> struct param<0, void (*)(H, T...)> : plain<H> {};
template <int I, class H, class... T>
struct param<I, void (*)(H, T...)> : param<I - 1, void (*)(T...)> {};
template <class F> struct arity;
template <class... T> struct arity<void (*)(T...)> { static constexpr count value = sizeof...(T); };
template <int I, class F, bool = (I < arity<F>::value)> struct parameter : param<I, F> {};
template <int I, class F> struct parameter<I, F, false>;
template <class T> struct function {
    static constexpr bool value = false;
    typedef void result;
    typedef void (*params)();
};
template <class R, class... T> struct function<R (*)(T...)> {
    static constexpr bool value = true;
    typedef R result;
    typedef void (*params)(T...);
};

// The vectors of CUDA consist of their `x`.
template <class T, class = void> struct component { typedef T type; };
template <class T>
struct component<T, decltype((void)((T*)0)->x)> : element<decltype(T::x)> {};

// NVRTC has no offsetof of its own, and no other compiler has its front end's word for it.
#ifdef __CUDACC_RTC__
#define GRIDCALL_OFFSET(T, field) __INTADDR__(&(((T*)0)->field))
#else
#define GRIDCALL_OFFSET(T, field) __builtin_offsetof(T, field)
#endif

// An enum is passed as its integer, whose sign is that of its values.
template <class T, class A, bool = __is_enum(T)> struct accepts {
    static constexpr bool value = same<T, A>::value;
};
template <class T, class A> struct accepts<T, A, true> {
    static constexpr bool value = sizeof(T) == sizeof(A);
};
struct address {};
template <class T> struct accepts<T*, address, false> { static constexpr bool value = true; };

template <count Claim, count Actual, count Expected> struct equal {
    static_assert(Actual == Expected, \"gridcall\");
};
template <count Claim, count Actual, count Expected> struct at_least {
    static_assert(Actual >= Expected, \"gridcall\");
};
template <count Claim, class Actual> struct changeable {
    static_assert(!any_const<Actual>::value, \"gridcall\");
};
template <count Claim, class Actual, class... Accepted> struct type {
    static_assert(any<accepts<typename element<Actual>::type, Accepted>::value...>::value, \"gridcall\");
};
template <count Claim, class Actual, class... Accepted> struct elements {
    typedef typename plain<typename pointee<Actual>::type>::type T;
    static constexpr bool is_void = same<T, void>::value;
    typedef typename element<T>::type E;
    static_assert(any<is_void, accepts<E, Accepted>::value...,
        same<typename component<E>::type, Accepted>::value...>::value, \"gridcall\");
};
// A vector is laid out as an array of what it consists of, and that as a vector.
template <count Claim, class Actual, class... Accepted> struct variable {
    typedef typename element<Actual>::type E;
    static_assert(any<accepts<E, Accepted>::value..., same<typename component<E>::type, Accepted>::value...,
        same<E, typename component<Accepted>::type>::value...>::value, \"gridcall\");
};
template <count Claim, class Actual> struct array {
    static_assert(pointee<Actual>::value, \"gridcall\");
};
template <count Claim, class Actual> struct writable {
    static_assert(!is_const<typename pointee<Actual>::type>::value, \"gridcall\");
};
template <count Claim, class Actual> struct constant {
    static_assert(is_const<typename pointee<Actual>::type>::value, \"gridcall\");
};
template <count Claim, class Actual> struct function_pointer {
    static_assert(function<Actual>::value, \"gridcall\");
};
template <count Claim, class Actual> struct returns_nothing {
    static_assert(same<typename function<Actual>::result, void>::value, \"gridcall\");
};
template <count Claim, class Actual> struct returns_something {
    static_assert(!same<typename function<Actual>::result, void>::value, \"gridcall\");
};
struct nothing {};
#ifdef __CUDA_FP16_TYPES_EXIST__
typedef __half half_type;
#else
typedef nothing half_type;
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
typedef __nv_bfloat16 bfloat16_type;
#else
typedef nothing bfloat16_type;
#endif
#ifdef __CUDA_FP8_TYPES_EXIST__
typedef __nv_fp8_e4m3 e4m3_type;
typedef __nv_fp8_e5m2 e5m2_type;
#else
typedef nothing e4m3_type;
typedef nothing e5m2_type;
#endif
}
";

/// The text that compiles behind a source if the declarations are those of its kernels and variables.
pub(super) fn claims(subjects: &[Subject<'_>]) -> Claims {
    let mut writer = Writer {
        declaration: 0,
        text: TEMPLATES.to_owned(),
        claims: Vec::new(),
        fields: 0,
    };
    for (number, subject) in subjects.iter().enumerate() {
        writer.declaration = number;
        match subject {
            Subject::Kernel(named) => writer.kernel(number, named),
            Subject::Variable(declaration) => writer.variable(number, declaration),
        }
    }
    Claims {
        text: writer.text,
        claims: writer.claims,
    }
}

struct Writer {
    /// The declaration that is written.
    declaration: usize,
    text: String,
    claims: Vec<Claim>,
    /// The templates written for fields so far.
    fields: usize,
}

impl Writer {
    /// The number of a new claim.
    fn claim(&mut self, subject: String, differs: &'static str) -> usize {
        let declaration = self.declaration;
        self.claims.push(Claim {
            declaration,
            subject,
            differs,
        });
        self.claims.len() - 1
    }

    fn instance(&mut self, template: &str, arguments: &str) {
        let _ = writeln!(
            self.text,
            "template struct gridcall_verify::{template}<{arguments}>;"
        );
    }

    fn kernel(&mut self, number: usize, named: &Named<'_>) {
        let &Declaration {
            kernel,
            file,
            line,
            params,
            ..
        } = named.declaration;
        let ty = named.ty();
        let _ = writeln!(self.text, "typedef {ty} gridcall_kernel_{number};");
        let place = format!("{file}:{line}");
        let subject = format!("{place}: `{kernel}` declares {} parameters", params.len());
        let claim = self.claim(subject, "the number in the source is");
        let arity = format!("gridcall_verify::arity<gridcall_kernel_{number}>::value");
        self.instance("equal", &format!("{claim}, {arity}, {}", params.len()));
        for (index, param) in params.iter().enumerate() {
            let _ = writeln!(
                self.text,
                "template <class F, bool = ({index} < gridcall_verify::arity<F>::value)> struct gridcall_param_{number}_{index} \
                 {{ typedef typename gridcall_verify::param<{index}, F>::type type; }};\n\
                 template <class F> struct gridcall_param_{number}_{index}<F, false>;"
            );
            let ty = format!("gridcall_param_{number}_{index}<gridcall_kernel_{number}>::type");
            let subject = format!(
                "{place}: parameter {index}, `{}`, of `{kernel}` is `{}`",
                param.name, param.ty
            );
            self.param(&subject, param, &ty);
        }
    }

    /// One of a function is known to the PTX alone.
    fn variable(&mut self, number: usize, declaration: &StaticDeclaration) {
        let &StaticDeclaration {
            name,
            cpp: Some(cpp),
            ty: declared,
            layout,
            mutable,
            file,
            line,
            ..
        } = declaration
        else {
            return;
        };
        let place = format!("{file}:{line}");
        let claim = self.claim(format!("{place}: `{name}` is `{cpp}` of the source"), SAYS);
        let _ = writeln!(
            self.text,
            "#line {} \"{DECLARES}\"\n\
             __device__ decltype(({cpp})) gridcall_variable_{number}(); \
             enum {{ gridcall_align_{number} = __alignof__({cpp}) }};\n\
             #line 1 \"gridcall_claims\"",
            claim + 1
        );
        // Of a `typedef` messages would tell the name.
        let ty =
            format!("gridcall_verify::variable_of<decltype(gridcall_variable_{number})>::type");
        let subject = format!("{place}: `{name}` is `{declared}`");
        if layout.fields.is_empty() {
            let claim = self.claim(subject.clone(), "the source declares");
            if let Some(accepted) = accepted(layout.kind) {
                self.instance("variable", &format!("{claim}, {ty}, {accepted}"));
            }
            self.size(&subject, &ty, layout.size);
        } else {
            self.size(&subject, &ty, layout.size);
            let element = format!("gridcall_verify::element<{ty}>::type");
            for field in layout.fields {
                self.field(&subject, field, &element);
            }
        }
        let claim = self.claim(
            format!("{subject}, aligned to {} bytes", layout.align),
            "the source aligns it to",
        );
        let align = format!("(gridcall_verify::count)gridcall_align_{number}");
        self.instance("at_least", &format!("{claim}, {align}, {}", layout.align));
        if mutable {
            let claim = self.claim(
                format!("{place}: `{name}` is `static mut`"),
                "it never changes in the source, which declares",
            );
            self.instance("changeable", &format!("{claim}, {ty}"));
        }
    }

    fn param(&mut self, subject: &str, param: &Param, ty: &str) {
        match &param.pass {
            Pass::Value(layout) => {
                if let Some(layout) = layout {
                    self.value(subject, layout, ty);
                }
            }
            Pass::Function(signature) => self.function(subject, signature, ty),
            Pass::Array {
                written,
                read_only,
                size,
                element,
            } => {
                let claim = self.claim(subject.to_owned(), "the source declares");
                self.instance("array", &format!("{claim}, {ty}"));
                if *written {
                    let claim = self.claim(subject.to_owned(), "the kernel only reads");
                    self.instance("writable", &format!("{claim}, {ty}"));
                } else if !read_only {
                    let claim = self.claim(subject.to_owned(), "the kernel may write to");
                    self.instance("constant", &format!("{claim}, {ty}"));
                }
                let Some(layout) = element else { return };
                let pointee =
                    format!("gridcall_verify::plain<gridcall_verify::pointee<{ty}>::type>::type");
                if layout.fields.is_empty() {
                    if let Some(accepted) = accepted(layout.kind) {
                        let claim = self.claim(subject.to_owned(), "the source declares");
                        let also = match layout.kind {
                            "u64" => ", gridcall_verify::address",
                            _ => "",
                        };
                        self.instance("elements", &format!("{claim}, {ty}, {accepted}{also}"));
                    }
                } else {
                    self.structure(subject, layout, &pointee, *size);
                }
            }
        }
    }

    fn function(&mut self, subject: &str, signature: &Signature<'_>, ty: &str) {
        let declares = "the source declares";
        let claim = self.claim(subject.to_owned(), declares);
        self.instance("function_pointer", &format!("{claim}, {ty}"));
        let function = format!("gridcall_verify::function<{ty}>");
        let count = signature.params.len();
        let counted = format!("{subject}, of {count} parameters");
        let claim = self.claim(counted, "the number in the source is");
        let arity = format!("gridcall_verify::arity<{function}::params>::value");
        self.instance("equal", &format!("{claim}, {arity}, {count}"));
        let of = |part: String, layout: &ArgLayout| match layout.kind {
            "" => format!("{subject}: {part} of the function"),
            kind => format!("{subject}: {part} of the function is `{kind}`"),
        };
        for (index, layout) in signature.params.iter().enumerate() {
            let ty = format!("gridcall_verify::parameter<{index}, {function}::params>::type");
            self.value(&of(format!("parameter {index}"), layout), layout, &ty);
        }
        let returned = if signature.result.is_some() {
            "returns_something"
        } else {
            "returns_nothing"
        };
        let claim = self.claim(subject.to_owned(), declares);
        self.instance(returned, &format!("{claim}, {ty}"));
        if let Some(layout) = &signature.result {
            let ty = format!("gridcall_verify::plain<{function}::result>::type");
            self.value(&of("the result".to_owned(), layout), layout, &ty);
        }
    }

    fn value(&mut self, subject: &str, layout: &ArgLayout, ty: &str) {
        if layout.fields.is_empty() {
            let claim = self.claim(subject.to_owned(), "the source declares");
            match accepted(layout.kind) {
                Some(accepted) => self.instance("type", &format!("{claim}, {ty}, {accepted}")),
                None => self.size(subject, ty, layout.size),
            }
        } else {
            self.structure(subject, layout, ty, layout.size);
            let claim = self.claim(
                format!("{subject}, aligned to {} bytes", layout.align),
                "the source aligns it to",
            );
            self.instance(
                "equal",
                &format!("{claim}, alignof({ty}), {}", layout.align),
            );
        }
    }

    fn size(&mut self, subject: &str, ty: &str, size: usize) {
        let claim = self.claim(
            format!("{subject}, of {size} bytes"),
            "its bytes in the source are",
        );
        self.instance("equal", &format!("{claim}, sizeof({ty}), {size}"));
    }

    fn structure(&mut self, subject: &str, layout: &ArgLayout, ty: &str, size: usize) {
        self.size(subject, ty, size);
        for field in layout.fields {
            self.field(subject, field, ty);
        }
    }

    /// A field that is not there is told as such, not as an error in our own text.
    fn field(&mut self, subject: &str, field: &Field, ty: &str) {
        let &Field {
            name,
            offset,
            layout,
        } = field;
        let number = self.fields;
        self.fields += 1;
        let _ = writeln!(
            self.text,
            "template <class T, class = void> struct gridcall_has_{number} \
             {{ static constexpr bool value = false; }};\n\
             template <class T> struct gridcall_has_{number}<T, decltype((void)((T*)0)->{name})> \
             {{ static constexpr bool value = true; }};\n\
             template <class T, bool = gridcall_has_{number}<T>::value> struct gridcall_field_{number} {{\n  \
                 static constexpr gridcall_verify::count offset = GRIDCALL_OFFSET(T, {name});\n  \
                 typedef typename gridcall_verify::plain<decltype(T::{name})>::type type;\n}};\n\
             template <class T> struct gridcall_field_{number}<T, false>;"
        );
        let field_subject = format!("{subject}: field `{name}`");
        let claim = self.claim(
            field_subject.clone(),
            "the struct in the source has no such field",
        );
        self.instance(
            "equal",
            &format!("{claim}, gridcall_has_{number}<{ty}>::value, 1"),
        );
        let of = format!("gridcall_field_{number}<{ty}>");
        let claim = self.claim(
            format!("{field_subject} is at offset {offset}"),
            "its offset in the source is",
        );
        self.instance("equal", &format!("{claim}, {of}::offset, {offset}"));
        let ty = format!("{of}::type");
        if layout.fields.is_empty() {
            self.size(&field_subject, &ty, layout.size);
            if let Some(accepted) = accepted(layout.kind) {
                let claim = self.claim(
                    format!("{field_subject} is `{}`", layout.kind),
                    "the source declares",
                );
                self.instance("type", &format!("{claim}, {ty}, {accepted}"));
            }
        } else {
            let element = format!("gridcall_verify::element<{ty}>::type");
            let size = layout.size;
            self.size(&field_subject, &ty, size);
            for field in layout.fields {
                self.field(&field_subject, field, &element);
            }
        }
    }
}

/// The types of C++ that a kind of value may be; none if it is not known by its kind.
fn accepted(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "bool" => "bool",
        "u8" => "unsigned char, char",
        "i8" => "signed char, char",
        "u16" => "unsigned short",
        "i16" => "short",
        "u32" if cfg!(windows) => "unsigned int, unsigned long",
        "i32" if cfg!(windows) => "int, long",
        "u32" => "unsigned int",
        "i32" => "int",
        "u64" if cfg!(windows) => "unsigned long long",
        "i64" if cfg!(windows) => "long long",
        "u64" => "unsigned long long, unsigned long",
        "i64" => "long long, long",
        "u128" => "unsigned __int128",
        "i128" => "__int128",
        "f32" => "float",
        "f64" => "double",
        "f16" => "gridcall_verify::half_type",
        "bf16" => "gridcall_verify::bfloat16_type",
        "e4m3" => "gridcall_verify::e4m3_type",
        "e5m2" => "gridcall_verify::e5m2_type",
        "uint3" => "uint3, dim3",
        "longlong1" => "longlong1, long1",
        "longlong2" => "longlong2, long2",
        "longlong3" => "longlong3, long3",
        "ulonglong1" => "ulonglong1, ulong1",
        "ulonglong2" => "ulonglong2, ulong2",
        "ulonglong3" => "ulonglong3, ulong3",
        vector => *VECTORS.iter().find(|name| **name == vector)?,
    })
}

const VECTORS: [&str; 36] = [
    "char1",
    "char2",
    "char3",
    "char4",
    "uchar1",
    "uchar2",
    "uchar3",
    "uchar4",
    "short1",
    "short2",
    "short3",
    "short4",
    "ushort1",
    "ushort2",
    "ushort3",
    "ushort4",
    "int1",
    "int2",
    "int3",
    "int4",
    "uint1",
    "uint2",
    "uint4",
    "float1",
    "float2",
    "float3",
    "float4",
    "double1",
    "double2",
    "double3",
    "double4",
    "longlong4",
    "ulonglong4",
    "dim3",
    "long4",
    "ulong4",
];
