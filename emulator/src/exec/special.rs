//! Special registers.

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    ClusterId(usize),
    NclusterId(usize),
    ClusterCtaid(usize),
    ClusterNctaid(usize),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    /// A performance counter: there are none, they stay zero.
    Counter,
    Counter64,
    EnvReg(u32),
    TotalSharedBytes,
    DynamicSharedBytes,
    /// Shared memory that the system keeps for itself: none.
    ReservedShared,
}

impl Special {
    /// Reads a name with its `%`, and its component where it is a vector.
    pub(crate) fn parse(name: &str, component: Option<&str>) -> Option<Self> {
        if let Some(component) = component {
            let axis = ["x", "y", "z"].iter().position(|axis| *axis == component)?;
            return Some(match name {
                "%tid" => Self::Tid(axis),
                "%ntid" => Self::Ntid(axis),
                "%ctaid" => Self::Ctaid(axis),
                "%nctaid" => Self::Nctaid(axis),
                "%clusterid" => Self::ClusterId(axis),
                "%nclusterid" => Self::NclusterId(axis),
                "%cluster_ctaid" => Self::ClusterCtaid(axis),
                "%cluster_nctaid" => Self::ClusterNctaid(axis),
                _ => return None,
            });
        }
        Some(match name {
            "%cluster_ctarank" => Self::ClusterCtarank,
            "%cluster_nctarank" => Self::ClusterNctarank,
            "%is_explicit_cluster" => Self::IsExplicitCluster,
            "%laneid" => Self::Laneid,
            "%warpid" => Self::Warpid,
            "%nwarpid" => Self::Nwarpid,
            "%smid" => Self::Smid,
            "%nsmid" => Self::Nsmid,
            "%gridid" => Self::Gridid,
            "%lanemask_eq" => Self::LanemaskEq,
            "%lanemask_le" => Self::LanemaskLe,
            "%lanemask_lt" => Self::LanemaskLt,
            "%lanemask_ge" => Self::LanemaskGe,
            "%lanemask_gt" => Self::LanemaskGt,
            "%clock" => Self::Clock,
            "%clock_hi" => Self::ClockHi,
            "%clock64" => Self::Clock64,
            "%globaltimer" => Self::GlobalTimer,
            "%globaltimer_lo" => Self::GlobalTimerLo,
            "%globaltimer_hi" => Self::GlobalTimerHi,
            "%total_smem_size" | "%aggr_smem_size" => Self::TotalSharedBytes,
            "%dynamic_smem_size" => Self::DynamicSharedBytes,
            "%reserved_smem_offset_begin"
            | "%reserved_smem_offset_end"
            | "%reserved_smem_offset_cap"
            | "%reserved_smem_offset_0"
            | "%reserved_smem_offset_1" => Self::ReservedShared,
            _ => return Self::parse_numbered(name),
        })
    }

    fn parse_numbered(name: &str) -> Option<Self> {
        if let Some(number) = name.strip_prefix("%envreg") {
            let number = number.parse().ok().filter(|number| *number < 32)?;
            return Some(Self::EnvReg(number));
        }
        let number = name.strip_prefix("%pm")?;
        match number.strip_suffix("_64") {
            Some(number) => number
                .parse::<u32>()
                .ok()
                .filter(|n| *n < 8)
                .map(|_| Self::Counter64),
            None => number
                .parse::<u32>()
                .ok()
                .filter(|n| *n < 8)
                .map(|_| Self::Counter),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::IsExplicitCluster => 1,
            Self::Clock64 | Self::GlobalTimer | Self::Gridid | Self::Counter64 => 64,
            _ => 32,
        }
    }

    /// It has another value at each reading.
    pub(crate) fn changes(self) -> bool {
        matches!(
            self,
            Self::Clock
                | Self::ClockHi
                | Self::Clock64
                | Self::GlobalTimer
                | Self::GlobalTimerLo
                | Self::GlobalTimerHi
        )
    }
}
