//! A launch in one line: for logs, and for the error of a kernel that failed.

use std::fmt;

use cudarc::driver::sys::CUstream;
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Layout, View, ViewError};

use crate::{
    attributes::Attributes,
    declaration::{Param, Pass},
    kernel::Arguments,
    launch::{Block, Dims, Grid},
    layout::ArgLayout,
    load::Loaded,
};

/// A launch, to be shown: the kernel, its shape, where it runs, and each argument.
///
/// Its `Display` is one line:
///
/// ```no_run
/// use gridcall::{cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let x = stream.clone_htod(&[1.0_f32; 1000])?;
/// let mut y = stream.clone_htod(&[2.0_f32; 1000])?;
/// let mut arguments = saxpy { n: 1000, a: 2.0, x: &x, y: &mut y };
/// println!("{}", arguments.describe(&stream, cover(1000))?);
/// // saxpy: grid (4, 1, 1), block (256, 1, 1), 0 bytes of dynamic shared memory, device 0, stream 0x0;
/// // n: u32 = 1000, a: f32 = 2, x: &[f32] = 1000 elements at 0x7f3c14000000, y: &mut [f32] = ...
/// arguments.launch(&stream, cover(1000))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LaunchDescription {
    kernel: &'static str,
    grid: Grid,
    block: Block,
    shared_mem_bytes: u32,
    /// Empty where there are none.
    attributes: String,
    device: usize,
    stream: usize,
    /// What each argument is, in the order of the declaration.
    arguments: Vec<(&'static Param, String)>,
}

impl LaunchDescription {
    #[cold]
    pub(crate) fn new(
        kernel: &Loaded,
        dims: [u32; 7],
        stream: CUstream,
        params: &[u8],
        arrays: &Arrays,
        attributes: Option<&Attributes<'_>>,
    ) -> LaunchDescription {
        let Dims {
            grid,
            block,
            shared_mem_bytes,
        } = Dims::from_numbers(dims);
        let arguments = kernel
            .declaration
            .params
            .iter()
            .enumerate()
            .map(|(index, param)| {
                let value = arrays.at(index).unwrap_or_else(|| {
                    let bytes = params
                        .get(param.offset..)
                        .and_then(|rest| rest.get(..param.size));
                    bytes.map_or_else(String::new, |bytes| argument(param, bytes))
                });
                (param, value)
            });
        LaunchDescription {
            kernel: kernel.declaration.kernel,
            grid,
            block,
            shared_mem_bytes,
            attributes: attributes.map_or_else(String::new, ToString::to_string),
            device: kernel.device,
            stream: stream.addr(),
            arguments: arguments.collect(),
        }
    }

    /// The kernel's name in Rust.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// The number of blocks.
    #[must_use]
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The number of threads of a block.
    #[must_use]
    pub fn block(&self) -> Block {
        self.block
    }

    /// The dynamic shared memory of a block in bytes.
    #[must_use]
    pub fn shared_mem_bytes(&self) -> u32 {
        self.shared_mem_bytes
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> usize {
        self.device
    }
}

impl fmt::Display for LaunchDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchDescription {
            kernel,
            grid,
            block,
            shared_mem_bytes,
            attributes,
            device,
            stream,
            arguments,
        } = self;
        let separator = if attributes.is_empty() { "" } else { ", " };
        write!(
            f,
            "{kernel}: grid {grid}, block {block}, {shared_mem_bytes} bytes of dynamic shared memory{separator}{attributes}, device {device}, stream {stream:#x}"
        )?;
        for (position, (Param { name, ty, .. }, value)) in arguments.iter().enumerate() {
            let separator = if position == 0 { ';' } else { ',' };
            write!(f, "{separator} {name}: {ty} = {value}")?;
        }
        Ok(())
    }
}

/// The same text as `Display`.
impl fmt::Debug for LaunchDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is known of arrays beyond their address.
#[derive(Debug, Default)]
pub struct Arrays {
    seen: Vec<(usize, String)>,
}

impl Arrays {
    /// Looks at an array that the kernel reads.
    pub fn read<T, V: AsDeviceView<T> + ?Sized>(&mut self, index: usize, array: &V) {
        self.see(index, &array.describe_strided());
    }

    /// Looks at an array that the kernel writes.
    pub fn write<T, V: AsDeviceViewMut<T> + ?Sized>(&mut self, index: usize, array: &V) {
        self.see(index, &array.describe_strided_mut());
    }

    /// Looks at an array that may be left out.
    pub fn read_optional<T>(&mut self, index: usize, array: Option<&dyn AsDeviceView<T>>) {
        match array {
            Some(array) => self.read(index, array),
            None => self.seen.push((index, "none".to_owned())),
        }
    }

    /// Looks at all arrays of a launch.
    pub(crate) fn of<A: Arguments>(arguments: &A) -> Arrays {
        let mut arrays = Arrays::default();
        arguments.see(&mut arrays);
        arrays
    }

    fn see(&mut self, index: usize, view: &Result<View<'_>, ViewError>) {
        // What it would be refused for, the launch says.
        let Ok(view) = view else { return };
        let (len, pointer) = (view.len(), view.pointer());
        let text = match view.layout() {
            Layout::Strided { shape, strides } if !view.is_contiguous() || shape.len() > 1 => {
                format!("shape {shape:?}, strides {strides:?} at {pointer:#x}")
            }
            _ => format!("{len} elements at {pointer:#x}"),
        };
        self.seen.push((index, text));
    }

    fn at(&self, index: usize) -> Option<String> {
        let seen = self.seen.iter().find(|(seen, _)| *seen == index);
        seen.map(|(_, text)| text.clone())
    }
}

/// An argument, read back from its bytes in the parameter block.
fn argument(param: &Param, bytes: &[u8]) -> String {
    match &param.pass {
        Pass::Value(Some(layout)) => value(layout, bytes),
        Pass::Array { .. } | Pass::Function(_) => pointer(bytes),
        Pass::Value(None) => unknown(bytes),
    }
}

fn value(layout: &ArgLayout, bytes: &[u8]) -> String {
    if !layout.fields.is_empty() {
        let fields = layout.fields.iter().map(|field| {
            let bytes = bytes.get(field.offset..field.offset + field.layout.size);
            let value = bytes.map_or_else(String::new, |bytes| value(&field.layout, bytes));
            format!("{}: {value}", field.name)
        });
        return format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "));
    }
    if layout.has_pointer {
        return pointer(bytes);
    }
    // `float4` is four of `float`.
    let kind = layout.kind.trim_end_matches(['1', '2', '3', '4']);
    scalars(layout.kind, bytes)
        .or_else(|| scalars(kind, bytes))
        .unwrap_or_else(|| unknown(bytes))
}

/// One scalar, or several; `None` if they are none that is known.
fn scalars(kind: &str, bytes: &[u8]) -> Option<String> {
    const MOST_SHOWN: usize = 8;
    macro_rules! scalar {
        ($($scalar:ident $($cuda:literal)?),+) => {
            match kind {
                $(stringify!($scalar) $(| $cuda)? => {
                    let scalars = bytes.chunks_exact(size_of::<$scalar>());
                    let texts = scalars.filter_map(|bytes| {
                        Some($scalar::from_ne_bytes(bytes.try_into().ok()?).to_string())
                    });
                    texts.collect::<Vec<String>>()
                })+
                "bool" => bytes.iter().map(|&byte| (byte != 0).to_string()).collect(),
                _ => return None,
            }
        };
    }
    let texts = scalar!(
        u8 "uchar", u16 "ushort", u32 "uint", u64 "ulonglong", usize, i8 "char", i16 "short", i32 "int",
        i64 "longlong", isize, f32 "float", f64 "double"
    );
    match texts.as_slice() {
        [one] => Some(one.clone()),
        many if many.len() > MOST_SHOWN => {
            let shown = many[..MOST_SHOWN].join(", ");
            Some(format!("[{shown}, ..] of {}", many.len()))
        }
        few => Some(format!("[{}]", few.join(", "))),
    }
}

fn pointer(bytes: &[u8]) -> String {
    match bytes.try_into() {
        Ok(address) => format!("{:#x}", u64::from_ne_bytes(address)),
        Err(_) => unknown(bytes),
    }
}

fn unknown(bytes: &[u8]) -> String {
    const MOST_SHOWN: usize = 32;
    match bytes.get(..MOST_SHOWN) {
        Some(first) if bytes.len() > MOST_SHOWN => {
            format!("{} bytes, first {first:02x?}", bytes.len())
        }
        _ => format!("bytes {bytes:02x?}"),
    }
}
