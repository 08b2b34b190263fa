//! PTX as compilers write it, as long as is wanted.

use std::fmt::Write;

/// A module of these kernels, each of about so many bytes.
pub(crate) fn module(kernels: &[usize], bytes: usize) -> String {
    let mut text = String::from(".version 8.0\n.target sm_75\n.address_size 64\n");
    for kernel in kernels {
        let start = text.len();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n\t// .globl\tkernel{kernel}\n.visible .entry kernel{kernel}(\n\
             \t.param .u32 kernel{kernel}_param_0,\n\
             \t.param .f32 kernel{kernel}_param_1,\n\
             \t.param .u64 kernel{kernel}_param_2,\n\
             \t.param .u64 kernel{kernel}_param_3\n)\n{{\n\
             \t.reg .f32 \t%f<8>;\n\t.reg .b32 \t%r<8>;\n\n"
        );
        while text.len() - start < bytes {
            text += "\tfma.rn.f32 \t%f3, %f1, %f2, %f3;\n\tadd.s32 \t%r3, %r1, %r2;\n";
        }
        text += "\tret;\n}\n";
    }
    text
}
