//! What a module declares: one short text for each rule.

use gridcall_ptx::{
    Arch, Class, Entry, Error, Function, Linkage, Module, Param, Pointer, ScalarType, StateSpace,
    Suffix, Version, params_limit,
};

fn read(rest: &str) -> Module {
    let text = format!(".version 9.5\n.target sm_90\n.address_size 64\n{rest}");
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn entry(rest: &str) -> Entry {
    let module = read(rest);
    let [entry] = module.entries() else {
        panic!("one entry in {rest}")
    };
    entry.clone()
}

fn param(declaration: &str) -> Param {
    let entry = entry(&format!(".entry k({declaration}) {{}}"));
    let [param] = entry.params() else {
        panic!("one parameter in {declaration}")
    };
    param.clone()
}

fn error(text: &str) -> Error {
    Module::parse(text).unwrap_err()
}

mod head {
    use super::*;

    #[test]
    fn version_target_and_address_size() {
        let module =
            Module::parse(".version 7.10\n.target sm_103f, debug\n.address_size 32").unwrap();
        assert_eq!(
            module.version(),
            Version {
                major: 7,
                minor: 10
            }
        );
        assert_eq!(module.target().name(), "sm_103f");
        assert_eq!(
            module.target().arch(),
            Some(Arch {
                number: 103,
                suffix: Suffix::F
            })
        );
        assert_eq!(module.target().options(), ["debug"]);
        assert_eq!(module.address_size(), 32);
    }

    #[test]
    fn addresses_have_32_bits_unless_said() {
        assert_eq!(
            Module::parse(".version 1.4 .target sm_10, map_f64_to_f32")
                .unwrap()
                .address_size(),
            32
        );
    }

    #[test]
    fn dialects_are_ordered_by_number() {
        let versions = ["1.4", "2.3", "6.0", "7.8", "8.10", "9.5"];
        let versions: Vec<Version> = versions
            .iter()
            .map(|version| {
                Module::parse(&format!(".version {version}\n.target sm_20"))
                    .unwrap()
                    .version()
            })
            .collect();
        assert!(versions.is_sorted());
    }

    #[test]
    fn architectures() {
        let arch = |name: &str| {
            Module::parse(&format!(".version 9.5\n.target {name}"))
                .unwrap()
                .target()
                .arch()
        };
        assert_eq!(
            arch("sm_75"),
            Some(Arch {
                number: 75,
                suffix: Suffix::None
            })
        );
        assert_eq!(
            arch("sm_90a"),
            Some(Arch {
                number: 90,
                suffix: Suffix::A
            })
        );
        assert_eq!(
            arch("compute_80"),
            Some(Arch {
                number: 80,
                suffix: Suffix::None
            })
        );
        assert_eq!(arch("sm_90q"), None);
        assert_eq!(arch("sm_"), None);
        assert_eq!(arch("sm_99999999999"), None);
        assert_eq!(
            arch("texmode_unified, sm_30"),
            Some(Arch {
                number: 30,
                suffix: Suffix::None
            })
        );
    }

    #[test]
    fn the_first_target_counts() {
        let module = Module::parse(".version 3.0\n.target sm_20\n.target sm_10").unwrap();
        assert_eq!(module.target().name(), "sm_20");
    }

    #[test]
    fn what_editors_and_drivers_leave() {
        let text = "\u{feff}// made by hand\r\n\r\n.version 8.0\r\n.target sm_80\r\n.entry k()\r\n{\r\n}\r\n\0\0";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.entries()[0].position().to_string(), "5:8");
        let first_line = Module::parse("\u{feff}.version 8.0 .target sm_80 .entry k {}").unwrap();
        assert_eq!(first_line.entries()[0].position().to_string(), "1:35");
    }

    #[test]
    fn comments_and_line_marks_anywhere() {
        let text = "/* a\n b */ .version /* c */ 8.0 // d\n# 1 \"k.cu\"\n.target sm_80 .entry // e\n k /* ( */ (.param // f )\n .u32 /**/ n) { }";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.entries()[0].params()[0].name(), "n");
        assert_eq!(
            module.entries()[0].params()[0].position().to_string(),
            "6:12"
        );
    }

    #[test]
    fn parameter_limits_of_the_manual() {
        let limit = |version: &str, target: &str| {
            let module = Module::parse(&format!(".version {version}\n.target {target}")).unwrap();
            params_limit(module.version(), module.target())
        };
        assert_eq!(limit("1.4", "sm_10"), 256);
        assert_eq!(limit("1.4", "sm_20"), 256);
        assert_eq!(limit("3.1", "sm_13"), 256);
        assert_eq!(limit("1.5", "sm_20"), 4352);
        assert_eq!(limit("8.0", "sm_90"), 4352);
        assert_eq!(limit("8.1", "sm_62"), 4352);
        assert_eq!(limit("8.1", "sm_70"), 32764);
        assert_eq!(limit("9.5", "sm_90a"), 32764);
        assert_eq!(limit("9.5", "sm_next"), 32764);
    }
}

mod params {
    use super::*;

    #[test]
    fn scalars() {
        use Class::{Bits, Float, Integer};
        for (ty, class, size) in [
            (".u8", Integer, 1),
            (".u16", Integer, 2),
            (".u32", Integer, 4),
            (".u64", Integer, 8),
            (".s8", Integer, 1),
            (".s16", Integer, 2),
            (".s32", Integer, 4),
            (".s64", Integer, 8),
            (".f16", Float, 2),
            (".bf16", Float, 2),
            (".f32", Float, 4),
            (".f64", Float, 8),
            (".b8", Bits, 1),
            (".b16", Bits, 2),
            (".b32", Bits, 4),
            (".b64", Bits, 8),
            (".b128", Bits, 16),
        ] {
            let param = param(&format!(".param {ty} p"));
            assert_eq!(param.ty().as_str(), ty);
            assert_eq!(
                (param.class(), param.size(), param.align()),
                (class, size, size),
                "{ty}"
            );
            assert_eq!(param.to_string(), ty);
            assert!(!param.is_array());
        }
    }

    #[test]
    fn pairs_of_halves_are_bytes() {
        let pair = param(".param .f16x2 p");
        assert_eq!((pair.class(), pair.size()), (Class::Bytes, 4));
    }

    #[test]
    fn references_to_textures_take_no_place() {
        let entry =
            entry(".entry k(.param .u8 a, .param .texref t, .param .u32 b, .param .surfref s) {}");
        let texture = &entry.params()[1];
        assert_eq!(
            (texture.class(), texture.ty()),
            (Class::Opaque, ScalarType::TexRef)
        );
        assert_eq!(
            (texture.size(), texture.to_string().as_str()),
            (0, ".texref")
        );
        assert_eq!((entry.params()[2].offset(), entry.params_size()), (4, 8));
    }

    #[test]
    fn arrays_are_bytes() {
        let array = param(".param .align 16 .b8 p[32]");
        assert_eq!(
            (array.class(), array.size(), array.align()),
            (Class::Bytes, 32, 16)
        );
        assert_eq!(array.to_string(), ".align 16 .b8 [32]");
        let floats = param(".param .f32 p[4]");
        assert_eq!(
            (floats.class(), floats.size(), floats.align()),
            (Class::Bytes, 16, 4)
        );
        assert_eq!(floats.to_string(), ".align 4 .f32 [4]");
        let matrix = param(".param .b8 p[2*8][0x3]");
        assert_eq!(
            (matrix.size(), matrix.to_string().as_str()),
            (48, ".align 1 .b8 [16][3]")
        );
    }

    #[test]
    fn an_alignment_of_its_own() {
        let scalar = param(".param .align 8 .u32 p");
        assert_eq!(
            (scalar.align(), scalar.to_string().as_str()),
            (8, ".align 8 .u32")
        );
    }

    #[test]
    fn pointers() {
        for (declaration, space, align) in [
            (".param .u64 .ptr .align 1 p", None, 1),
            (
                ".param .u64 .ptr .global .align 16 p",
                Some(StateSpace::Global),
                16,
            ),
            (".param .u64 .ptr .shared p", Some(StateSpace::Shared), 4),
            (".param .u32 .ptr p", None, 4),
        ] {
            let param = param(declaration);
            assert_eq!(
                param.pointer(),
                Some(Pointer { space, align }),
                "{declaration}"
            );
            assert_eq!(
                param.align(),
                param.size(),
                "what is pointed to has an alignment of its own"
            );
        }
        let triton = param(".param .u64 .ptr .global .align 16 p");
        assert_eq!(triton.to_string(), ".u64 .ptr .global .align 16");
        assert_eq!(param(".param .u64 p").pointer(), None);
    }

    #[test]
    fn names() {
        for name in [
            "k_param_0",
            "__cudaparm_k_d_in",
            "%param_0",
            "$x",
            "_",
            "a$b",
            "_ZN3foo",
            "grün",
        ] {
            assert_eq!(param(&format!(".param .u64 {name}")).name(), name);
        }
    }

    #[test]
    fn offsets_round_up_and_the_end_does_not() {
        let entry = entry(
            ".entry k(.param .u8 a, .param .u16 b, .param .f64 c, .param .u8 d,
                .param .align 16 .b8 e[20], .param .u8 f, .param .align 4 .b8 g[3]) {}",
        );
        let offsets: Vec<usize> = entry.params().iter().map(Param::offset).collect();
        assert_eq!(offsets, [0, 2, 8, 16, 32, 52, 56]);
        assert_eq!(entry.params_size(), 59);
    }

    #[test]
    fn no_size_is_too_large_to_read() {
        let param = param(".param .b8 p[1099511627776]");
        assert_eq!(param.size(), 1 << 40);
    }
}

mod entries {
    use super::*;

    #[test]
    fn linkage() {
        for (words, linkage) in [
            (".visible", Linkage::Visible),
            (".weak", Linkage::Weak),
            ("", Linkage::None),
        ] {
            assert_eq!(
                entry(&format!("{words} .entry k() {{ret;}}")).linkage(),
                linkage
            );
        }
    }

    #[test]
    fn with_and_without_parentheses() {
        for text in [
            ".entry k{}",
            ".entry k {}",
            ".entry k(){}",
            ".entry k ( ) { }",
            ".entry k\n(\n)\n{\n}",
        ] {
            let entry = entry(text);
            assert_eq!(
                (entry.name(), entry.params().len(), entry.params_size()),
                ("k", 0, 0)
            );
        }
    }

    #[test]
    fn every_directive_behind_the_parameters() {
        let entry = entry(
            ".entry k() .maxntid 256, 2 .reqntid 16,16,4 .minnctapersm 2 .maxnctapersm 3 .maxnreg 32
                .maxclusterrank 8 .reqnctapercluster 2 .explicitcluster .blocksareclusters .noreturn
                .pragma \"nounroll\", \"used_bytes_mask 15\"; { ret; }",
        );
        let directives = entry.directives();
        assert_eq!(directives.maxntid(), Some([256, 2, 1]));
        assert_eq!(directives.reqntid(), Some([16, 16, 4]));
        assert_eq!(directives.minnctapersm(), Some(2));
        assert_eq!(directives.maxnctapersm(), Some(3));
        assert_eq!(directives.maxnreg(), Some(32));
        assert_eq!(directives.maxclusterrank(), Some(8));
        assert_eq!(directives.reqnctapercluster(), Some([2, 1, 1]));
        assert!(directives.explicitcluster());
        assert!(directives.blocksareclusters());
        assert!(directives.noreturn());
        assert_eq!(directives.pragmas(), ["nounroll", "used_bytes_mask 15"]);
        assert!(directives.unknown().is_empty());
    }

    #[test]
    fn nothing_behind_the_parameters() {
        let entry = entry(".entry k() {}");
        let directives = entry.directives();
        assert_eq!(directives.maxntid(), None);
        assert_eq!(directives.reqnctapercluster(), None);
        assert!(!directives.explicitcluster() && !directives.blocksareclusters());
    }

    #[test]
    fn directives_of_a_later_language_are_kept_by_name() {
        let entry = entry(
            ".entry k(.param .u32 n) .later 3, (.u32 4) \"x\" .maxnreg 16 .another abc; { ret; }",
        );
        assert_eq!(entry.directives().unknown(), [".later", ".another"]);
        assert_eq!(entry.directives().maxnreg(), Some(16));
        assert!(entry.body().is_some());
    }

    #[test]
    fn bodies_are_stepped_over() {
        let text = ".version 9.5 .target sm_90
            .entry a() { { .reg .b32 %r<3>; mov.b64 %rd1, {%r1, %r2}; } /* } */ // }
                .pragma \"}\"; .file 1 \"C:\\dir\\\"; nonsense % ^ 7up }
            .entry b() { .pragma \"} over
                two lines }\"; }";
        let module = Module::parse(text).unwrap();
        let bodies: Vec<&str> = module
            .entries()
            .iter()
            .map(|entry| &text[entry.body().unwrap().range()])
            .collect();
        assert!(bodies[0].starts_with("{ { .reg") && bodies[0].ends_with("7up }"));
        assert!(bodies[1].starts_with("{ .pragma") && bodies[1].ends_with("}\"; }"));
        assert_eq!(
            module
                .entry("a")
                .unwrap()
                .body()
                .unwrap()
                .position()
                .to_string(),
            "2:24"
        );
    }

    #[test]
    fn found_by_name() {
        let module = read(".entry one() {} .entry two() {} .entry three(.param .u32 n) {}");
        assert_eq!(module.entry("three").unwrap().params().len(), 1);
        assert!(module.entry("four").is_none());
        assert_eq!(module.entries()[1].name(), "two");
    }

    #[test]
    fn a_prototype_is_filled_by_its_definition() {
        for text in [
            ".extern .entry k(.param .u32 n); .visible .entry k(.param .u32 m) { ret; }",
            ".visible .entry k(.param .u32 m) { ret; } .extern .entry k(.param .u32 n);",
        ] {
            let entry = entry(text);
            assert!(entry.body().is_some());
            assert_eq!(
                (entry.linkage(), entry.params()[0].name()),
                (Linkage::Visible, "m")
            );
        }
        let prototype = entry(".extern .entry k(.param .u32 n) ;");
        assert!(prototype.body().is_none());
    }
}

mod functions {
    use super::*;

    #[test]
    fn a_prototype_with_parameters() {
        let module = read(
            ".extern .func (.param .b32 func_retval0) vprintf
            (
                .param .b64 vprintf_param_0,
                .param .b64 vprintf_param_1
            )
            ;",
        );
        let vprintf = &module.functions()[0];
        assert_eq!(
            (vprintf.name(), vprintf.linkage()),
            ("vprintf", Linkage::Extern)
        );
        assert_eq!(vprintf.returns()[0].ty(), ScalarType::B32);
        assert_eq!(vprintf.params()[1].offset(), 8);
        assert!(vprintf.body().is_none());
        assert!(module.entries().is_empty());
    }

    #[test]
    fn all_forms_of_the_manual() {
        let module = read(
            ".func (.reg .b32 rval) foo (.reg .b32 N, .reg .v2 .f64 dbl) { ret; }
             .func bar .noreturn { trap; }
             .func (.param .u32 rval) variadic(.param .u32 N, .param .align 4 .b8 numbers[]) { ret; }
             .func (.param .b32 out[30]) kept (.param .b32 in[30]) .abi_preserve 10 { ret; }
             .weak .func (.reg .b32 val) weak;
             .func .attribute(.unified(0xAB, 0xCD)) unified() { ret; }",
        );
        let functions = module.functions();
        let names: Vec<&str> = functions.iter().map(Function::name).collect();
        assert_eq!(names, ["foo", "bar", "variadic", "kept", "weak", "unified"]);
        let double = &functions[0].params()[1];
        assert_eq!(
            (double.space(), double.vector(), double.size()),
            (StateSpace::Reg, 2, 16)
        );
        assert_eq!(
            (double.class(), double.to_string().as_str()),
            (Class::Bytes, ".v2 .f64")
        );
        assert!(functions[1].directives().noreturn());
        let numbers = &functions[2].params()[1];
        assert_eq!(
            (numbers.size(), numbers.offset(), numbers.to_string()),
            (0, 4, ".align 4 .b8 []".into())
        );
        assert_eq!(functions[3].directives().unknown(), [".abi_preserve"]);
        assert_eq!(functions[4].linkage(), Linkage::Weak);
        assert!(module.function("kept").unwrap().body().is_some());
    }

    #[test]
    fn aliases() {
        let module = read(".visible .func foo() {ret;} .visible .func bar(); .alias bar, foo;");
        assert_eq!(
            (module.aliases()[0].name(), module.aliases()[0].function()),
            ("bar", "foo")
        );
    }
}

mod variables {
    use super::*;
    use Linkage as L;
    use ScalarType as T;
    use StateSpace as S;

    #[test]
    fn every_space() {
        let module = read(
            ".extern .shared .align 8 .b8 dynamic[];
             .shared .align 4 .f32 tile[16][17];
             .const .align 4 .u32 table[4] = {1, 2};
             .visible .global .align 8 .u64 counter;
             .common .global .u32 shared_counter;
             .tex .u32 old_texture;
             .global .texref texture;
             .global .attribute(.managed) .align 4 .u32 managed = 7;
             .visible .global .align 4 .attribute(.managed) .s32 also = -1;",
        );
        let seen: Vec<_> = module
            .variables()
            .iter()
            .map(|v| {
                (
                    v.name(),
                    v.space(),
                    v.linkage(),
                    v.ty(),
                    v.align(),
                    v.size(),
                    v.is_managed(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("dynamic", S::Shared, L::Extern, T::B8, 8, None, false),
                ("tile", S::Shared, L::None, T::F32, 4, Some(1088), false),
                ("table", S::Const, L::None, T::U32, 4, Some(16), false),
                ("counter", S::Global, L::Visible, T::U64, 8, Some(8), false),
                (
                    "shared_counter",
                    S::Global,
                    L::Common,
                    T::U32,
                    4,
                    Some(4),
                    false
                ),
                ("old_texture", S::Tex, L::None, T::U32, 4, Some(4), false),
                ("texture", S::Global, L::None, T::TexRef, 8, Some(8), false),
                ("managed", S::Global, L::None, T::U32, 4, Some(4), true),
                ("also", S::Global, L::Visible, T::S32, 4, Some(4), true),
            ]
        );
    }

    #[test]
    fn several_in_one_declaration() {
        let module = read(".global .v2 .f32 a, b[3], c = {1.0, 2.0};");
        let seen: Vec<_> = module
            .variables()
            .iter()
            .map(|v| (v.name(), v.size(), v.dims().to_vec()))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", Some(8), vec![]),
                ("b", Some(24), vec![3]),
                ("c", Some(8), vec![])
            ]
        );
        assert_eq!(module.variables()[0].vector(), 2);
    }

    #[test]
    fn open_arrays_are_as_long_as_their_values() {
        let module = read(
            ".global .u32 primes[] = { 2, 3, 5, 7, 11 };
             .global .f32 blur[][3] = {{.05,.1,.05},{.1,.4,.1},{.05,.1}};
             .global .u8 ragged[][4] = {{1,2,3,4},{5}};",
        );
        let dims: Vec<_> = module
            .variables()
            .iter()
            .map(|v| (v.dims().to_vec(), v.size()))
            .collect();
        assert_eq!(
            dims,
            [
                (vec![5], Some(20)),
                (vec![3, 3], Some(36)),
                (vec![2, 4], Some(8))
            ]
        );
    }

    #[test]
    fn a_value_is_stepped_over() {
        let text = ".version 9.5 .target sm_90 .global .u64 p[2] = {generic(q)+8, 0}, q = 1 + (2, 3); .entry k() {}";
        let module = Module::parse(text).unwrap();
        let ranges = module
            .variables()
            .iter()
            .map(|v| &text[v.initializer().unwrap().range()]);
        assert_eq!(
            ranges.collect::<Vec<_>>(),
            ["{generic(q)+8, 0}", "1 + (2, 3)"]
        );
    }
}

mod others {
    use super::*;

    #[test]
    fn files() {
        let module = read(
            ".file 1 \"saxpy.cu\", 1339013327, 64118\n.file\t2 \"C:\\cuda\\a.h\"\n.entry k() {}",
        );
        let files: Vec<_> = module
            .files()
            .iter()
            .map(|file| (file.index(), file.name()))
            .collect();
        assert_eq!(files, [(1, "saxpy.cu"), (2, "C:\\cuda\\a.h")]);
        assert_eq!(module.entries().len(), 1);
    }

    #[test]
    fn what_nobody_asks_for_is_stepped_over() {
        let module = read(
            ".pragma \"nounroll\";
             .section .debug_abbrev
             {
             .b8 1 // {
             .b32 .debug_abbrev
             label:
             .b64 label+4
             }
             .section .debug_macinfo { }
             @@DWARF .section .debug_pubnames, \"\", @progbits
             @@DWARF .byte 0x2b, 0x00
             .later a, b,
                c;
             .later_still (1, 2) { .entry no() {} }
             .on_its_line abc 7
             .reg .u32 %r<3>;
             ;
             .entry k() {}",
        );
        assert_eq!(module.entries().len(), 1);
    }
}

mod errors {
    use super::*;

    fn assert_error(text: &str, shown: &str) {
        let error = error(text);
        assert_eq!(error.to_string(), shown, "{text}");
        let position = error.position();
        assert!(shown.starts_with(&format!(
            "line {}, column {}:",
            position.line, position.column
        )));
        assert!(shown.ends_with(&error.message()));
    }

    /// The error in a text behind two good lines.
    fn assert_error_behind(rest: &str, shown: &str) {
        assert_error(&format!(".version 9.5\n.target sm_90\n{rest}"), shown);
    }

    #[test]
    fn what_is_no_ptx() {
        assert_error("", "line 1, column 1: this is not PTX: the text is empty");
        assert_error(
            "// only this\n",
            "line 2, column 1: this is not PTX: the text is empty",
        );
        assert_error(
            "\u{7f}ELF\u{2}\u{1}",
            "line 1, column 1: this is not PTX text but an ELF file, such as a cubin",
        );
        assert_error(
            "__global__ void k() {}",
            "line 1, column 1: this is not PTX: it begins with `__global__` instead of `.version`",
        );
        assert_error(
            "\u{1}\u{2}",
            "line 1, column 1: this is not PTX: it begins with `\\u{1}` instead of `.version`",
        );
    }

    #[test]
    fn the_head() {
        assert_error(
            ".target sm_90\n.version 9.5",
            "line 1, column 1: expected `.version`, with which PTX begins, found `.target`",
        );
        assert_error(
            "/* open\n.version 9.5",
            "line 1, column 1: expected `.version`, with which PTX begins, found a comment without its `*/`",
        );
        assert_error(
            ".version nine",
            "line 1, column 10: expected a version such as `8.7`, found `nine`",
        );
        assert_error(
            ".version 9",
            "line 1, column 10: expected a version such as `8.7`, found `9`",
        );
        assert_error(
            ".version 9.99999999999",
            "line 1, column 10: expected a version such as `8.7`, found `9.99999999999`",
        );
        assert_error(
            ".version 9.5\n",
            "line 2, column 1: expected `.target`, found the end of the text",
        );
        assert_error(
            ".version 9.5\n.entry k() {}",
            "line 2, column 1: expected `.target`, found `.entry`",
        );
        assert_error(
            ".version 9.5\n.target 90",
            "line 2, column 9: expected an architecture such as `sm_90`, found `90`",
        );
        assert_error_behind(
            ".address_size 16",
            "line 3, column 15: expected `32` or `64`, found `16`",
        );
    }

    #[test]
    fn parameters() {
        assert_error_behind(
            ".entry k(.param .u32 n .foo)",
            "line 3, column 24: expected `,` or `)`, found `.foo`",
        );
        assert_error_behind(
            ".entry k(.u32 n) {}",
            "line 3, column 10: expected `.param`, found `.u32`",
        );
        assert_error_behind(
            ".entry k(.param .u32 n,) {}",
            "line 3, column 24: expected `.param`, found `)`",
        );
        assert_error_behind(
            ".func k(.u32 n) {}",
            "line 3, column 9: expected `.param` or `.reg`, found `.u32`",
        );
        assert_error_behind(
            ".entry k(.param n) {}",
            "line 3, column 17: expected a type, found `n`",
        );
        assert_error_behind(
            ".entry k(.param .u7 n) {}",
            "line 3, column 17: expected a type, found `.u7`",
        );
        assert_error_behind(
            ".entry k(.param .u32 .u64 n) {}",
            "line 3, column 22: expected a name, found `.u64`",
        );
        assert_error_behind(
            ".entry k(.param .u32) {}",
            "line 3, column 21: expected the name of a parameter, found `)`",
        );
        assert_error_behind(
            ".entry k(.param .align 3 .b8 p[4]) {}",
            "line 3, column 24: expected an alignment that is a power of two, found `3`",
        );
        assert_error_behind(
            ".entry k(.param .align x .b8 p[4]) {}",
            "line 3, column 24: expected an alignment, found `x`",
        );
        assert_error_behind(
            ".entry k(.param .b8 p[]) {}",
            "line 3, column 21: an array parameter of an entry needs its size",
        );
        assert_error_behind(
            ".entry k(.param .u32 n, .param .u32 m, .param .u64 n) {}",
            "line 3, column 52: parameter `n` is declared twice",
        );
        assert_error_behind(
            ".entry k(.param .pred p) {}",
            "line 3, column 23: a predicate cannot be passed in `.param`",
        );
        assert_error_behind(
            ".entry k(.param .v4 .f32 p) {}",
            "line 3, column 26: a vector is passed in `.param` as an array of `.b8`",
        );
        assert_error_behind(
            ".entry k(.param .b8 p[0]) {}",
            "line 3, column 23: expected the size of an array, above 0, found `0`",
        );
        assert_error_behind(
            ".entry k(.param .b8 p[n]) {}",
            "line 3, column 23: expected a number, found `n`",
        );
        assert_error_behind(
            ".entry k(.param .b8 p[4) {}",
            "line 3, column 24: expected `]`, found `)`",
        );
        assert_error_behind(
            ".entry k(.param .u64 p[0x7fffffffffffffff]) {}",
            "line 3, column 22: this array is larger than any memory",
        );
        assert_error_behind(
            ".entry k(.param .b8 p[0xffffffffffffffff], .param .u64 q) {}",
            "line 3, column 56: the parameters are larger than any memory",
        );
        assert_error_behind(
            ".entry k(.param .u32 n",
            "line 3, column 23: expected `,` or `)`, found the end of the text",
        );
        assert_error_behind(
            ".entry k(.param .u32 n /* open",
            "line 3, column 24: expected `,` or `)`, found a comment without its `*/`",
        );
    }

    #[test]
    fn entries() {
        assert_error_behind(
            ".entry (",
            "line 3, column 8: expected the name of an entry, found `(`",
        );
        assert_error_behind(
            ".func ()",
            "line 3, column 9: expected the name of a function, found the end of the text",
        );
        assert_error_behind(
            ".entry k()\n.visible .entry l() {}",
            "line 4, column 1: expected `{`, `;` or a directive such as `.maxntid`, found `.visible`",
        );
        assert_error_behind(
            ".entry k() ret;",
            "line 3, column 12: expected `{`, `;` or a directive such as `.maxntid`, found `ret`",
        );
        assert_error_behind(
            ".entry k() .maxntid {}",
            "line 3, column 21: expected a size, found `{`",
        );
        assert_error_behind(
            ".entry k() .maxntid 1,2,3,4 {}",
            "line 3, column 26: expected `{`, `;` or a directive such as `.maxntid`, found `,`",
        );
        assert_error_behind(
            ".entry k() .maxnreg 4294967296 {}",
            "line 3, column 21: expected a number of registers, found `4294967296`",
        );
        assert_error_behind(
            ".entry k() .pragma x; {}",
            "line 3, column 20: expected a string, found `x`",
        );
        assert_error_behind(
            ".entry k() .pragma \"x {}",
            "line 3, column 20: expected a string, found a string without its closing quote",
        );
        assert_error_behind(
            ".entry k() {\n{ }\n",
            "line 3, column 12: this `{` is not closed",
        );
        assert_error_behind(
            ".entry k() {}\n\n .entry k() {}",
            "line 5, column 9: `.entry k` is defined twice, first in line 3",
        );
        assert_error_behind(
            ".func f() {}\n.func f() {}",
            "line 4, column 7: `.func f` is defined twice, first in line 3",
        );
    }

    #[test]
    fn other_declarations() {
        assert_error_behind(
            "entry k() {}",
            "line 3, column 1: expected a directive such as `.entry`, found `entry`",
        );
        assert_error_behind(
            ".visible k() {}",
            "line 3, column 10: expected `.entry`, `.func` or a state space such as `.global`, found `k`",
        );
        assert_error_behind(".global x;", "line 3, column 9: expected a type, found `x`");
        assert_error_behind(
            ".global .u32 ;",
            "line 3, column 14: expected the name of a variable, found `;`",
        );
        assert_error_behind(
            ".global .u32 x y;",
            "line 3, column 16: expected `=`, `,` or `;`, found `y`",
        );
        assert_error_behind(
            ".global .u32 x = ;",
            "line 3, column 18: expected the value of a variable, found `;`",
        );
        assert_error_behind(
            ".global .u32 x = 1",
            "line 3, column 19: expected the value of a variable, found the end of the text",
        );
        assert_error_behind(
            ".global .u32 x[2] = {1",
            "line 3, column 21: this `{` is not closed",
        );
        assert_error_behind(
            ".global .u32 x[2][];",
            "line 3, column 14: only the first size of an array may be left out",
        );
        assert_error_behind(
            ".file x \"k.cu\"",
            "line 3, column 7: expected the number of a file, found `x`",
        );
        assert_error_behind(
            ".file 1 k.cu",
            "line 3, column 9: expected the name of a file in quotes, found `k`",
        );
        assert_error_behind(".alias a b;", "line 3, column 10: expected `,`, found `b`");
        assert_error_behind(
            ".section .debug_info { .b8 1",
            "line 3, column 22: this `{` is not closed",
        );
        assert_error_behind(
            &format!(".global .u8 x{};", "[1]".repeat(33)),
            "line 3, column 110: expected an array of at most 32 dimensions, found `[`",
        );
    }

    #[test]
    fn long_and_strange_names_are_shortened() {
        let name = "n".repeat(700);
        let error = error(&format!(
            ".version 9.5\n.target sm_90\n.entry {name}() {{}} .entry {name}() {{}}"
        ));
        let shown = "n".repeat(60);
        assert_eq!(
            error.message(),
            format!("`.entry {shown}…` is defined twice, first in line 3")
        );
    }

    #[test]
    fn errors_say_what_they_expected() {
        let error = error(".version 9.5\n.target sm_90\n.entry k(.param .u32 n .foo)");
        assert_eq!(error.expected(), Some("`,` or `)`"));
        assert_eq!(super::error("").expected(), None);
    }
}
