//! What declarations expand to, formatted, by lines that must and must not be there.

use proc_macro2::TokenStream;

use crate::stages;

/// The expansion of `#[kernel(options)] item`.
fn expand(options: &str, item: &str) -> String {
    let out = stages::kernel(parse(options), parse(item));
    let file = syn::parse2(out.clone()).unwrap_or_else(|error| panic!("{error}: {out}"));
    prettyplease::unparse(&file)
}

/// Without what depends on where lines break.
fn compact(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    text.replace(",)", ")")
        .replace(",>", ">")
        .replace(",]", "]")
        .replace(",}", "}")
}

/// The expansion of a declaration in a block on a file of `kernels/`.
fn expand_block(file: &str, declaration: &str) -> String {
    let options = format!("ptx = \"../kernels/{file}.ptx\"");
    expand(
        &options,
        &format!("unsafe extern \"C\" {{ {declaration} }}"),
    )
}

fn parse(source: &str) -> TokenStream {
    source.parse().unwrap()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(
            compact(text).contains(&compact(part)),
            "{part} is missing in:\n{text}"
        );
    }
}

#[track_caller]
fn assert_lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(
            !compact(text).contains(&compact(part)),
            "{part} is in:\n{text}"
        );
    }
}

const SAXPY: &str = "/** y = a x + y */ #[requires(x.len() >= n, y.len() >= n)] #[block(128)]
    pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);";

#[test]
fn a_kernel_is_a_function_and_a_struct() {
    let text = expand_block("vector", SAXPY);
    assert_has(
        &text,
        &[
            "pub fn saxpy<'__e>( stream: &::gridcall::cudarc::driver::CudaStream, \
             launch: impl ::gridcall::LaunchShape<'__e>, n: u32, a: f32, \
             x: &(impl ::gridcall::AsDeviceView<f32> + ?::core::marker::Sized), \
             y: &mut (impl ::gridcall::AsDeviceViewMut<f32> + ?::core::marker::Sized), ) \
             -> ::core::result::Result<(), ::gridcall::LaunchError>",
            "saxpy { n, a, x, y }.launch(stream, launch)",
            "pub struct saxpy< \
             __X2: ::gridcall::AsDeviceView<f32> = ::gridcall::__private::NoView, \
             __X3: ::gridcall::AsDeviceViewMut<f32> = ::gridcall::__private::NoView, >",
            "pub n: u32,",
            "pub x: __X2,",
            "impl ::gridcall::__private::Declared for saxpy {",
            "type Safety = ::gridcall::Safe;",
            "type Params = ::gridcall::__private::Params<24>;",
            "const ARRAYS: ::core::primitive::usize = 2;",
        ],
    );
    assert_lacks(
        &text,
        &["unsafe fn saxpy", "unsafe fn launch", "compile_error"],
    );
}

#[test]
fn a_launch_takes_its_steps_in_order() {
    let text = expand_block("vector", SAXPY);
    let steps = [
        "let __view2 = __call.read::<f32, _>(2, 4, &self.x)?;",
        "let __view3 = __call.write::<f32, _>(3, 4, &mut self.y)?;",
        "let n: ::gridcall::__private::Int = ::core::convert::Into::into(self.n);",
        "let x = ::gridcall::__private::ViewOf(__view2);",
        "if (x.len() >= n) {}",
        "__call.requirement(0, &[(\"n\", &{ n }), (\"x.len()\", &x.len())])",
        "__call.requirement(1,",
        "__call.disjoint(|| [(2, __view2, false), (3, __view3, true)])?;",
        "Params::<24>::zeroed();",
        "__params.set(0, &self.n);",
        "__params.set(4, &self.a);",
        "__params.set_pointer(8, __view2);",
        "__params.set_pointer(16, __view3);",
        "let __guard2 = __call.acquire::<f32, _>(2, &self.x)?;",
        "let __guard3 = __call.acquire_mut::<f32, _>(3, &mut self.y)?;",
        "unsafe { __call.enqueue(__params) }?;",
        "let mut __end = __call.finish();",
        "__end.guard(2, __guard2);",
        "__end.guard(3, __guard3);",
        "__end.result()",
    ];
    let text = compact(&text);
    let mut rest = text.as_str();
    for step in steps.map(compact) {
        let Some(at) = rest.find(&step) else {
            panic!("{step} is missing or too early in: {text}");
        };
        rest = &rest[at + step.len()..];
    }
}

#[test]
fn a_declaration_says_what_the_ptx_does() {
    let text = expand_block("vector", SAXPY);
    assert_has(
        &text,
        &[
            "kernel: \"saxpy\", entry: \"saxpy\", variants: &[",
            "Variant { image: &__IMAGE0, entry: \"saxpy\",",
            "Param::scalar(\"n\", \"u32\", 0, \"u32\")",
            "Param::array(\"x\", \"&[f32]\", 8, \"f32\", false, true)",
            "Param::array(\"y\", \"&mut [f32]\", 16, \"f32\", true, false)",
            "params_size: 24,",
            "requires: &[\"x.len() >= n\", \"y.len() >= n\"],",
            "block: ::core::option::Option::Some([128, 1, 1]),",
            "reqntid: ::core::option::Option::None,",
            "maxntid: ::core::option::Option::None",
            "may_alias: &[]",
            "path: \"../kernels/vector.ptx\",",
            "::core::include_bytes!(",
        ],
    );
    let text = expand_block("shared", "safe fn bounded(y: &mut [f32], n: i32);");
    assert_has(
        &text,
        &["maxntid: ::core::option::Option::Some([256, 1, 1])"],
    );
    let alias = "#[may_alias(y, x)] safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);";
    assert_has(&expand_block("vector", alias), &["may_alias: &[(2, 3)]"]);
}

#[test]
fn a_kernel_without_ptx_is_laid_out_by_its_types() {
    let text = expand("", "unsafe fn k(n: u8, g: Grid, x: &[f32], h: Half);");
    assert_has(
        &text,
        &[
            "const __PLACES_k: ::gridcall::__private::Places<4> = ::gridcall::__private::Places::new([",
            "(1, 1), ::gridcall::__private::size_and_align::<Grid>(), (8, 8),",
            "unsafe fn load_from(module: &::gridcall::Module,)",
            "variants: &[],",
            "Params<{ __PLACES_k.size }>",
            "__params.set_pointer(__PLACES_k.offsets[2], __view2);",
            "check_safe::<Grid>(\"k\", 1, \"g\", \"Grid\", false)",
        ],
    );
    assert_lacks(&text, &["fn k(", "fn load(", "fn launch"]);
}

#[test]
fn each_image_of_a_kernel_is_carried() {
    let corpus = "../ptx/tests/corpus/axpy.nvrtc13";
    let ptx = format!("ptx = [\"{corpus}.sm_75.ptx\", \"{corpus}.sm_100.ptx\"]");
    let text = expand(
        &ptx,
        "unsafe fn axpy(a: f32, x: &[f32], y: &mut [f32], n: u64);",
    );
    assert_has(
        &text,
        &[
            "static __IMAGE0:",
            "target: \"sm_75\"",
            "static __IMAGE1:",
            "target: \"sm_100\"",
            "image: &__IMAGE1, entry: \"axpy\"",
        ],
    );
    let wrong = expand(&ptx, "unsafe fn axpy(a: f32, x: &[f32], y: u64, n: u64);");
    assert_has(&wrong, &["compile_error!"]);
}

#[test]
fn what_is_not_needed_is_left_out() {
    let text = expand_block("vector", "safe fn zero(y: &mut [f32]);");
    assert_lacks(
        &text,
        &[
            "disjoint",
            "__call.requirement",
            "check_layout",
            "check_element",
        ],
    );
    let text = expand_block("scalars", "safe fn nothing();");
    assert_lacks(
        &text,
        &[
            "__call.read",
            "acquire",
            "__params.set",
            "fn run(mut self",
            "__end.guard",
        ],
    );
    assert_has(
        &text,
        &[
            "fn nothing<'__e>( stream",
            "Params::<0>::zeroed();",
            "const ARRAYS: ::core::primitive::usize = 0;",
        ],
    );
}

#[test]
fn an_unsafe_kernel_is_unsafe_everywhere() {
    for qualifier in ["unsafe fn", "fn"] {
        let text = expand_block("vector", &format!("{qualifier} zero(y: &mut [f32]);"));
        assert_has(
            &text,
            &[
                "unsafe fn zero<'__e>(",
                "unsafe fn launch<'__e>(",
                "unsafe { zero { y }.launch(stream, launch) }",
                "type Safety = ::gridcall::Unsafe;",
                "unsafe { ::gridcall::__private::launch_unsafe(self, stream,",
                "# Safety The caller vouches",
            ],
        );
    }
    let documented = "/** # Safety\n\n`y` is long enough. */ unsafe fn zero(y: &mut [f32]);";
    assert_lacks(&expand_block("vector", documented), &["The caller vouches"]);
}

#[test]
fn optional_arrays_and_pointers_borrow() {
    let text = expand_block(
        "scalars",
        "unsafe fn maybe(x: Option<&[f32]>, out: *mut f32, n: i32);",
    );
    assert_has(
        &text,
        &[
            "struct maybe<'__a> {",
            "x: ::core::option::Option<&'__a dyn ::gridcall::AsDeviceView<f32>>,",
            "out: ::gridcall::DevicePointerMut<'__a, f32>,",
            "impl ::gridcall::__private::Declared for maybe<'static> {",
            "x: ::core::option::Option<&dyn ::gridcall::AsDeviceView<f32>>,",
            "out: ::gridcall::DevicePointerMut<'_, f32>,",
            "let __view0 = __call.read_optional::<f32>(0, 4, self.x)?;",
            "let __guard0 = __call.acquire_optional::<f32>(0, self.x)?;",
            "__params.set(8, &self.out);",
        ],
    );
}

#[test]
fn types_of_the_users_are_compared_by_the_compiler() {
    let text = expand_block("structs", "safe fn julia(out: &mut [Pixel], g: Grid);");
    assert_has(
        &text,
        &[
            "::gridcall::__private::check_layout::<Grid>(",
            "param: \"g\", ty: \"Grid\", size: 12, align: 4, class: \
             ::gridcall::__private::Class::Bytes,",
            "ptx: \".align 4 .b8 [12]\", place: \"../kernels/structs.ptx:",
            "::gridcall::__private::check_element::<Pixel>(\"julia\", 0, \"out\")",
            "__SET1(&mut __params, 8, &self.g);",
            "if ::core::mem::align_of::<Pixel>() < 1 { 1 } else { \
             ::core::mem::align_of::<Pixel>() }",
        ],
    );
}

#[test]
fn contracts_speak_of_launches_and_fields() {
    let text = expand_block(
        "structs",
        "#[requires(out.len() >= g.n * 2, block.x == 256, grid.blocks() < 9, shared_mem_bytes == 0)]
         safe fn julia(out: &mut [u32], g: Grid);",
    );
    assert_has(
        &text,
        &[
            "let g = &self.g;",
            "::gridcall::__private::Field(g.n).get() * ::gridcall::__private::Int::new(2)",
            "(\"g.n\", &::gridcall::__private::Field(g.n).shown())",
            "let block: ::gridcall::__private::Extents = \
             ::core::convert::Into::into(__call.block());",
            "let grid: ::gridcall::__private::Extents = ::core::convert::Into::into(__call.grid());",
            "let shared_mem_bytes: ::gridcall::__private::Int",
        ],
    );
    let shadowed = "#[name(\"scale\")] #[requires(block.len() >= grid)]
        safe fn own(block: &mut [f32], a: f32, grid: i32);";
    assert_lacks(&expand_block("vector", shadowed), &["Extents"]);
}

#[test]
fn contracts_count_in_integers_of_every_width() {
    let text = expand_block(
        "scalars",
        "#[requires(n > 1, invert, a.len() > 0)]
         safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: bool, out: &mut [bool]);",
    );
    assert_has(
        &text,
        &[
            "let invert = self.invert;",
            "let n: ::gridcall::__private::Int",
        ],
    );
}

#[test]
fn alignment_is_the_strictest_of_all() {
    let text = expand_block(
        "vector",
        "unsafe fn copy4(#[align(16)] x: &[f32], #[align(32)] y: &mut [Float4], n4: i32);",
    );
    assert_has(
        &text,
        &[
            "__call.read::<f32, _>(0, 16, &self.x)?",
            "if ::core::mem::align_of::<Float4>() < 32 { 32 }",
        ],
    );
}

#[test]
fn attributes_go_where_they_belong() {
    let text = expand_block(
        "vector",
        "#[cfg(unix)] #[deprecated] #[must_use] #[inline] #[allow(clippy::doc_markdown)]
         pub(crate) safe fn zero(/** What is zeroed. */ y: &mut [f32]);",
    );
    assert_eq!(text.matches("#[cfg(unix)]").count(), 6, "{text}");
    assert_eq!(text.matches("#[deprecated]").count(), 2, "{text}");
    assert_eq!(text.matches("#[must_use]").count(), 1, "{text}");
    assert_has(
        &text,
        &[
            "/// What is zeroed. pub(crate) y: __X0",
            "pub(crate) fn load(",
        ],
    );
}

#[test]
fn the_crate_is_called_as_the_user_says() {
    let text = expand(
        "crate = facade::gpu, ptx = \"../kernels/structs.ptx\"",
        "#[requires(out.len() >= g.n, block.x == 1)] unsafe fn julia(out: &mut [u32], g: Grid);",
    );
    assert_has(
        &text,
        &[
            "facade::gpu::AsDeviceViewMut<u32>",
            "facade::gpu::__private::Int",
        ],
    );
    assert_lacks(&text, &["::gridcall"]);
}

#[test]
fn nothing_is_named_without_its_root() {
    let text = expand_block("vector", SAXPY);
    for name in [
        "Result<",
        "Option<",
        "Into<",
        "Ok(",
        "Err(",
        "Some(",
        "concat!",
        "include_bytes!",
    ] {
        for (at, _) in text.match_indices(name) {
            assert!(
                text[..at].ends_with("::"),
                "{name} in: {}",
                &text[at.saturating_sub(40)..at]
            );
        }
    }
}

#[test]
fn a_wrong_kernel_is_outlined_and_others_are_whole() {
    let text = expand_block(
        "vector",
        "safe fn relu(y: &mut [f32], n: String); safe fn zero(y: &mut [f32]);",
    );
    assert_has(
        &text,
        &[
            "::core::compile_error!",
            "fn relu<'__e>( stream",
            "n: impl ::core::marker::Sized, )",
            "struct relu< __X0: ::gridcall::AsDeviceViewMut<f32> = ::gridcall::__private::NoView, \
             __X1: ::core::marker::Sized = (), >",
            "impl ::gridcall::__private::Declared for zero {",
        ],
    );
    assert_lacks(&text, &["Declared for relu"]);
    assert_eq!(text.matches("compile_error").count(), 1);
}

#[test]
fn errors_stand_under_the_cfg_of_their_kernel() {
    let text = expand_block("vector", "#[cfg(windows)] safe fn no_such(y: &mut [f32]);");
    assert_has(&text, &["#[cfg(windows)] ::core::compile_error!"]);
    let text = expand(
        "ptx = \"no/such.ptx\"",
        "#[cfg(windows)] unsafe fn zero(y: &mut [f32]);",
    );
    assert_has(&text, &["#[cfg(windows)] ::core::compile_error!"]);
}

#[test]
fn what_cannot_be_read_is_given_back() {
    let options = "ptx = \"../kernels/vector.ptx\"";
    let block = "unsafe extern \"C\" { safe fn relu(y: &, n: u32); safe fn zero(y: &mut [f32]); }";
    let out = stages::kernel(parse(options), parse(block)).to_string();
    assert_has(
        &out,
        &[
            "compile_error",
            "safe fn relu(y: &, n: u32);",
            "Declared for zero",
        ],
    );
    assert_eq!(out.matches("compile_error").count(), 1, "{out}");
    let inner = "unsafe extern \"C\" { #![allow(unused)] safe fn zero(y: &mut [f32]); }";
    let out = expand(options, inner);
    assert_has(&out, &["#[allow(unused)]"]);
    assert_lacks(&out, &["#![allow(unused)]"]);
    let out = stages::kernel(parse(options), parse("fn relu(y: &);")).to_string();
    assert_has(&out, &["compile_error", "fn relu(y: &);"]);
}

#[test]
fn each_block_carries_its_image_once() {
    let text = expand_block(
        "vector",
        "safe fn zero(y: &mut [f32]); safe fn relu(y: &mut [f32], n: i32);",
    );
    assert_eq!(text.matches("include_bytes!").count(), 1);
}
