//! What can be run: entries, which the host launches, and functions, which other code calls.

use crate::error::Position;
use crate::param::Param;
use crate::types::Linkage;

/// A kernel: `.entry`.
///
/// ```
/// let module = gridcall_ptx::Module::parse(
///     ".version 9.5
///      .target sm_90
///      .visible .entry scale(.param .u64 data, .param .f32 by) .maxntid 256 { ret; }",
/// )?;
/// let scale = module.entry("scale").unwrap();
/// assert_eq!(scale.params_size(), 12);
/// assert_eq!(scale.directives().maxntid(), Some([256, 1, 1]));
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) linkage: Linkage,
    pub(crate) params: Vec<Param>,
    pub(crate) directives: Directives,
    pub(crate) body: Option<Body>,
}

impl Entry {
    /// The name, as the driver looks it up.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the name stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Who sees it.
    #[must_use]
    pub fn linkage(&self) -> Linkage {
        self.linkage
    }

    /// The parameters in order.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The bytes of all parameters: the end of the last one, without padding behind it.
    #[must_use]
    pub fn params_size(&self) -> usize {
        self.params.last().map_or(0, |last| last.offset + last.size)
    }

    /// What stands between the parameters and the body.
    #[must_use]
    pub fn directives(&self) -> &Directives {
        &self.directives
    }

    /// Where the code is; a prototype has none.
    #[must_use]
    pub fn body(&self) -> Option<&Body> {
        self.body.as_ref()
    }
}

/// A device function: `.func`, defined or only announced.
///
/// ```
/// let module = gridcall_ptx::Module::parse(
///     ".version 9.5
///      .target sm_90
///      .extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 arguments);",
/// )?;
/// let vprintf = &module.functions()[0];
/// assert_eq!(vprintf.name(), "vprintf");
/// assert_eq!(vprintf.returns()[0].size(), 4);
/// assert!(vprintf.body().is_none());
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) linkage: Linkage,
    pub(crate) returns: Vec<Param>,
    pub(crate) params: Vec<Param>,
    pub(crate) directives: Directives,
    pub(crate) body: Option<Body>,
}

impl Function {
    /// The name, as `call` uses it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the name stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Who sees it.
    #[must_use]
    pub fn linkage(&self) -> Linkage {
        self.linkage
    }

    /// What it returns.
    #[must_use]
    pub fn returns(&self) -> &[Param] {
        &self.returns
    }

    /// The parameters in order.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// What it takes and returns, without names: `(.b32, .b64) -> .b32`.
    #[must_use]
    pub fn signature(&self) -> String {
        signature(&self.params, &self.returns)
    }

    /// What stands between the parameters and the body.
    #[must_use]
    pub fn directives(&self) -> &Directives {
        &self.directives
    }

    /// Where the code is; a prototype has none.
    #[must_use]
    pub fn body(&self) -> Option<&Body> {
        self.body.as_ref()
    }
}

pub(crate) fn signature(params: &[Param], returns: &[Param]) -> String {
    let list = |params: &[Param]| {
        let shown: Vec<String> = params.iter().map(Param::to_string).collect();
        shown.join(", ")
    };
    match returns {
        [] => format!("({})", list(params)),
        returns => format!("({}) -> {}", list(params), list(returns)),
    }
}

/// A second name of a function: `.alias second, first;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub(crate) name: String,
    pub(crate) function: String,
}

impl Alias {
    /// The second name, which a prototype announces too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name under which the function is defined.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }
}

/// What stands between the parameters and the body of an entry or a function.
///
/// Each has its section in the PTX manual, [performance-tuning directives] and
/// [cluster dimension directives].
///
/// [performance-tuning directives]: https://docs.nvidia.com/cuda/parallel-thread-execution/#performance-tuning-directives
/// [cluster dimension directives]: https://docs.nvidia.com/cuda/parallel-thread-execution/#cluster-dimension-directives
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    pub(crate) maxntid: Option<[u32; 3]>,
    pub(crate) reqntid: Option<[u32; 3]>,
    pub(crate) minnctapersm: Option<u32>,
    pub(crate) maxnctapersm: Option<u32>,
    pub(crate) maxnreg: Option<u32>,
    pub(crate) maxclusterrank: Option<u32>,
    pub(crate) reqnctapercluster: Option<[u32; 3]>,
    pub(crate) explicitcluster: bool,
    pub(crate) blocksareclusters: bool,
    pub(crate) noreturn: bool,
    pub(crate) pragmas: Vec<String>,
    pub(crate) unknown: Vec<String>,
}

impl Directives {
    /// `.maxntid`: the most threads of a block; a launch may arrange them otherwise.
    #[must_use]
    pub fn maxntid(&self) -> Option<[u32; 3]> {
        self.maxntid
    }

    /// `.reqntid`: the threads that every block has.
    #[must_use]
    pub fn reqntid(&self) -> Option<[u32; 3]> {
        self.reqntid
    }

    /// `.minnctapersm`: the fewest blocks to fit on a multiprocessor.
    #[must_use]
    pub fn minnctapersm(&self) -> Option<u32> {
        self.minnctapersm
    }

    /// `.maxnctapersm`: the most blocks to fit on a multiprocessor, the older form.
    #[must_use]
    pub fn maxnctapersm(&self) -> Option<u32> {
        self.maxnctapersm
    }

    /// `.maxnreg`: the most registers of a thread.
    #[must_use]
    pub fn maxnreg(&self) -> Option<u32> {
        self.maxnreg
    }

    /// `.maxclusterrank`: the most blocks of a cluster.
    #[must_use]
    pub fn maxclusterrank(&self) -> Option<u32> {
        self.maxclusterrank
    }

    /// `.reqnctapercluster`: the blocks that every cluster has.
    #[must_use]
    pub fn reqnctapercluster(&self) -> Option<[u32; 3]> {
        self.reqnctapercluster
    }

    /// `.explicitcluster`: a launch has to give the size of its clusters.
    #[must_use]
    pub fn explicitcluster(&self) -> bool {
        self.explicitcluster
    }

    /// `.blocksareclusters`: a launch counts clusters where it else counts blocks.
    #[must_use]
    pub fn blocksareclusters(&self) -> bool {
        self.blocksareclusters
    }

    /// `.noreturn`: the function does not come back.
    #[must_use]
    pub fn noreturn(&self) -> bool {
        self.noreturn
    }

    /// `.pragma`, the strings without their quotes.
    #[must_use]
    pub fn pragmas(&self) -> &[String] {
        &self.pragmas
    }

    /// Directives that this reader does not know, by name and with their dot.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }
}

/// Where the code of an entry or a function lies in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) position: Position,
}

impl Body {
    /// The bytes of the text from the opening brace to the closing one.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    /// Where the opening brace stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }
}
