//! Windows of the L2 cache's access policy: memory of which a launch says how long to keep it there.

use std::{ffi::c_uint, fmt};

use gridcall_view::{AsDeviceView, Layout, Place, ViewError, ViewErrorKind};

use crate::{error::AttributeError, load::Loaded};

/// Memory of an array whose accesses by a launch are kept in the L2 cache for longer, or for less long,
/// than others ([L2 access management]). Asked for by
/// [`Launch::access_policy_window`](crate::Launch::access_policy_window).
///
/// It is a part of the array's memory, of which `hit_ratio` is chosen at random to be accessed in one way,
/// and the rest in another. It says nothing of what a kernel may do, and borrows nothing: made of an array,
/// it can be asked for by launches that write that array. After the array is gone, it is about whatever is
/// there then, and changes nothing but the time that takes.
///
/// ```no_run
/// use gridcall::{AccessPolicyWindow, AccessProperty, Buffer, PersistingL2, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     #[requires(x.len() >= n, y.len() >= n)]
///     safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// let x = Buffer::from_slice(&stream, &[1.0_f32; 1000])?;
/// let mut y = Buffer::<f32>::zeroed(&stream, 1000)?;
///
/// let l2 = PersistingL2::of(&ctx);
/// let before = l2.bytes()?;
/// l2.set_bytes(l2.max_bytes()? / 2)?;
/// // Three quarters of y's accesses stay, the others make room for themselves.
/// let window = AccessPolicyWindow::new(&y, AccessProperty::Persisting)?
///     .hit_ratio(0.75)
///     .miss(AccessProperty::Streaming);
/// let launch = cover(1000).access_policy_window(window);
/// for _ in 0..10 {
///     saxpy(&stream, launch, 1000, 2.0, &x, &mut y)?;
/// }
/// // For what comes after them.
/// stream.synchronize()?;
/// l2.reset()?;
/// l2.set_bytes(before)?;
/// # Ok(())
/// # }
/// ```
///
/// [L2 access management]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#l2-policy-for-persisting-accesses
#[derive(Clone, Copy, Debug)]
pub struct AccessPolicyWindow {
    address: u64,
    bytes: u64,
    hit_ratio: f32,
    hit: AccessProperty,
    miss: AccessProperty,
    /// The ordinal of the array's device; none if it is on every device.
    device: Option<i32>,
}

/// How long the L2 cache keeps what is accessed
/// ([`CUaccessProperty`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html)).
///
/// ```
/// use gridcall::AccessProperty;
/// assert_eq!(AccessProperty::default(), AccessProperty::Normal);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessProperty {
    /// As all that nobody says anything of. What stayed because of an earlier launch stays no longer.
    #[default]
    Normal,
    /// Less long than all else.
    Streaming,
    /// Longer than all else, in what [`PersistingL2`](crate::PersistingL2) set aside.
    Persisting,
}

impl AccessPolicyWindow {
    /// All of an array: any that a launch takes, or a part of one. All of its accesses are `hit`, until
    /// [`hit_ratio`](AccessPolicyWindow::hit_ratio) says otherwise.
    ///
    /// # Errors
    ///
    /// If the array is not contiguous, or cannot say where it is: of those of a graph,
    /// [`Graph::access_policy_window`](crate::Graph::access_policy_window) makes windows.
    pub fn new<T, V>(array: &V, hit: AccessProperty) -> Result<AccessPolicyWindow, ViewError>
    where
        V: AsDeviceView<T> + ?Sized,
    {
        let view = array.describe()?;
        if !view.is_contiguous() {
            return Err(match view.layout() {
                Layout::Strided { shape, strides } => ViewErrorKind::NotContiguous {
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                    cure: array.make_contiguous(),
                }
                .into(),
                _ => ViewError::other("the array's layout is not known"),
            });
        }
        let bytes = view.len().saturating_mul(size_of::<T>()) as u64;
        let device = match view.place() {
            Place::Context { device, .. } | Place::Device(device) => Some(device),
            Place::Everywhere => None,
            _ => {
                return Err(ViewError::other(
                    "the array is in a place that is not known",
                ));
            }
        };
        Ok(AccessPolicyWindow::of(view.pointer(), bytes, device, hit))
    }

    /// So many bytes from an address on, of a device or of all.
    pub(crate) fn of(
        address: u64,
        bytes: u64,
        device: Option<i32>,
        hit: AccessProperty,
    ) -> AccessPolicyWindow {
        AccessPolicyWindow {
            address,
            bytes,
            hit_ratio: 1.0,
            hit,
            miss: AccessProperty::Normal,
            device,
        }
    }

    /// The same window, of which this part is `hit`: from 0, none of it, to 1, all.
    ///
    /// What stays without pushing out other parts of it is as much as was set aside: a window that is larger
    /// has a ratio of the one to the other. A launch refuses a ratio that is none.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::{AccessPolicyWindow, AccessProperty};
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let x = stream.alloc_zeros::<f32>(1000)?;
    /// let window = AccessPolicyWindow::new(&x, AccessProperty::Persisting)?.hit_ratio(0.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn hit_ratio(mut self, ratio: f32) -> AccessPolicyWindow {
        self.hit_ratio = ratio;
        self
    }

    /// The same window, of which the part that is not `hit` is accessed so: by
    /// [`Normal`](AccessProperty::Normal), as unless it is said, or
    /// [`Streaming`](AccessProperty::Streaming). A launch refuses the third, as the driver does.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::{AccessPolicyWindow, AccessProperty};
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let x = stream.alloc_zeros::<f32>(1000)?;
    /// let window = AccessPolicyWindow::new(&x, AccessProperty::Persisting)?
    ///     .hit_ratio(0.5)
    ///     .miss(AccessProperty::Streaming);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn miss(mut self, property: AccessProperty) -> AccessPolicyWindow {
        self.miss = property;
        self
    }

    /// The bytes of the window.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use gridcall::{AccessPolicyWindow, AccessProperty};
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let x = stream.alloc_zeros::<f32>(1000)?;
    /// let window = AccessPolicyWindow::new(&x, AccessProperty::Streaming)?;
    /// assert_eq!(window.bytes(), 4000);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// That the driver takes it, for this kernel's device.
    pub(super) fn check(&self, kernel: &Loaded) -> Result<(), AttributeError> {
        let limits = &kernel.limits;
        if limits.access_policy_window == 0 {
            return Err(AttributeError::Capability {
                attribute: "an access policy window",
                needed: (8, 0),
                capability: limits.capability,
            });
        }
        if let Some(array) = self.device
            && usize::try_from(array) != Ok(kernel.device)
        {
            return Err(AttributeError::WindowElsewhere {
                array,
                device: kernel.device,
            });
        }
        if self.bytes > u64::from(limits.access_policy_window) {
            return Err(AttributeError::WindowTooLarge {
                bytes: self.bytes,
                limit: limits.access_policy_window,
            });
        }
        if !(0.0..=1.0).contains(&self.hit_ratio) {
            return Err(AttributeError::HitRatio {
                ratio: self.hit_ratio,
            });
        }
        if self.miss == AccessProperty::Persisting {
            return Err(AttributeError::MissPersists);
        }
        Ok(())
    }

    pub(super) fn to_sys(self) -> SysWindow {
        SysWindow {
            address: self.address,
            bytes: self.bytes,
            hit_ratio: self.hit_ratio,
            hit: self.hit.number(),
            miss: self.miss.number(),
        }
    }
}

/// `CUaccessPolicyWindow`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct SysWindow {
    address: u64,
    bytes: u64,
    hit_ratio: f32,
    hit: c_uint,
    miss: c_uint,
}

impl AccessProperty {
    fn number(self) -> c_uint {
        match self {
            AccessProperty::Normal => 0,
            AccessProperty::Streaming => 1,
            AccessProperty::Persisting => 2,
        }
    }
}

/// A ratio is compared by its bits: one that is no number is equal to itself.
impl PartialEq for AccessPolicyWindow {
    fn eq(&self, other: &AccessPolicyWindow) -> bool {
        let key = |window: &AccessPolicyWindow| {
            let AccessPolicyWindow {
                address,
                bytes,
                hit_ratio,
                hit,
                miss,
                device,
            } = *window;
            (address, bytes, hit_ratio.to_bits(), hit, miss, device)
        };
        key(self) == key(other)
    }
}

impl Eq for AccessPolicyWindow {}

impl fmt::Display for AccessPolicyWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessPolicyWindow {
            address,
            bytes,
            hit_ratio,
            hit,
            miss,
            ..
        } = self;
        write!(
            f,
            "an access policy window of {bytes} bytes from {address:#x} on, {hit_ratio} of it {hit} and the rest {miss}"
        )
    }
}

impl fmt::Display for AccessProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessProperty::Normal => "normal",
            AccessProperty::Streaming => "streaming",
            AccessProperty::Persisting => "persisting",
        })
    }
}
