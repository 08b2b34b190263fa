//! No lint that a crate may turn on speaks of the generated code.

#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    unreachable_pub,
    unused,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    single_use_lifetimes,
    trivial_casts,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    let_underscore_drop,
    macro_use_extern_crate,
    meta_variable_misuse,
    non_ascii_idents,
    redundant_lifetimes,
    variant_size_differences,
    nonstandard_style,
    future_incompatible,
    keyword_idents,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::allow_attributes_without_reason,
    clippy::min_ident_chars,
    clippy::shadow_reuse,
    clippy::question_mark_used,
    clippy::missing_docs_in_private_items,
    clippy::single_call_fn,
    clippy::impl_trait_in_params,
    clippy::absolute_paths,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::as_conversions
)]

/// Kernels as a library offers them.
pub mod kernels {
    use gridcall::{AsDeviceView, AsDeviceViewMut, KernelArg, kernel};

    #[kernel(ptx = "../kernels/tensor_map.ptx")]
    unsafe extern "C" {
        /// Fills a tile.
        #[requires(map.tile(0) == 8)]
        pub safe fn fill_tile(value: f32, map: TensorMapMut<f32>, row: i32, column: i32);
    }

    #[kernel(ptx = "../kernels/texture.ptx")]
    unsafe extern "C" {
        /// Adds pairs.
        #[requires(pairs.len() >= count, sums.len() >= count)]
        #[name("pairs")]
        pub safe fn add_pairs(pairs: Texture<gridcall::UInt2>, sums: &mut [u32], count: u32);
    }

    #[kernel(ptx = "../kernels/conditional.ptx")]
    unsafe extern "C" {
        /// Sets a condition.
        pub safe fn set_condition(condition: GraphCondition, value: u32);
    }

    #[kernel(ptx = "../kernels/symbols.ptx")]
    unsafe extern "C" {
        /// The taps of the filter.
        #[name("taps")]
        pub static mut TAPS: [f32; 5];
        #[name("ramp")]
        static RAMP: [f32; 4];
    }

    #[kernel(ptx = "../kernels/vector.ptx")]
    unsafe extern "C" {
        /// Adds `scale` times `input` to `output`.
        #[requires(input.len() >= count, output.len() >= count, count > 0)]
        #[block(256)]
        pub safe fn saxpy(count: u32, scale: f32, input: &[f32], output: &mut [f32]);

        #[name("axpy")]
        pub safe fn without_docs(
            count: i32,
            scale: f32,
            input: &[f32],
            #[align(16)] output: &mut [f32],
        );

        /// Kept for those who call it.
        #[deprecated = "use saxpy"]
        #[name("relu")]
        pub safe fn old(output: &mut [f32], count: i32);
    }

    #[kernel(ptx = "../kernels/structs.ptx")]
    unsafe extern "C" {
        /// Draws a Julia set.
        #[requires(output.len() >= grid.count * grid.count)]
        pub(crate) safe fn julia(output: &mut [u32], grid: Grid);
    }

    #[kernel(ptx = "../kernels/scalars.ptx")]
    unsafe extern "C" {
        #[allow(clippy::doc_markdown, reason = "handed on")]
        pub(in crate::kernels) safe fn maybe(
            input: Option<&[f32]>,
            #[doc = "What is written."] output: &mut [f32],
            count: i32,
        );

        /// Never called.
        safe fn nothing();
    }

    /// The part of the plane that is drawn.
    #[derive(Clone, Copy, Debug, KernelArg)]
    #[repr(C)]
    pub(crate) struct Grid {
        origin: f32,
        step: f32,
        pub(crate) count: i32,
    }

    /// How to round.
    #[derive(Clone, Copy, Debug, KernelArg)]
    #[repr(u8)]
    pub enum Mode {
        /// To the nearest.
        Nearest,
    }

    /// An array with a name.
    #[derive(Debug, AsDeviceView, AsDeviceViewMut)]
    pub struct Samples<Array> {
        /// The array.
        #[view]
        pub array: Array,
        /// Its name.
        pub name: &'static str,
    }

    #[test]
    fn it_compiles() {
        assert_eq!(size_of_val(&julia::load) + size_of_val(&maybe::load), 0);
        let grid = Grid {
            origin: 0.0,
            step: 0.1,
            count: 10,
        };
        drop(format!("{grid:?} {:?}", Mode::Nearest));
    }
}
