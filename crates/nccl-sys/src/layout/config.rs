//! The two configurations. Both only ever grow at their end, and say in `size` and `version` how
//! much of them there is: a library takes what it knows, leaves out the rest without a word, and
//! fills in what it is not given. So ours state the oldest layout that has what was set, and
//! [`Config::since`] tells which release that takes.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr;

use crate::Version;

/// `NCCL_CONFIG_UNDEF_INT`: left to the library.
pub const UNDEFINED: c_int = c_int::MIN;
/// `NCCL_API_MAGIC`: by it a library tells that the structure was initialised.
const MAGIC: c_uint = 0xcafe_beef;

/// `ncclConfig_t`: how a communicator behaves, up to the fields of 2.32. RCCL's ends earlier and is
/// the same as far as it goes (2.18's in RCCL 2.21, 2.27's in RCCL 2.27, 2.30.3's in RCCL 2.30).
///
/// Fields are set through methods, which also state the layout that has them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes that are stated.
    pub size: usize,
    /// By it a library tells that the structure was initialised.
    pub magic: c_uint,
    /// [`Version::number`] of the layout that is stated.
    pub version: c_uint,
    /// 0: calls that wait for peers return [`IN_PROGRESS`](super::Status::IN_PROGRESS) instead.
    pub blocking: c_int,
    /// Blocks of a cluster.
    pub cga_cluster_size: c_int,
    /// Least blocks of a kernel.
    pub min_ctas: c_int,
    /// Most blocks of a kernel.
    pub max_ctas: c_int,
    /// Which network plug-in; null leaves it to the library.
    pub net_name: *const c_char,
    /// Do communicators of a split share resources?
    pub split_share: c_int,
    /// The network's traffic class.
    pub traffic_class: c_int,
    /// A name for logs; null for none.
    pub comm_name: *const c_char,
    /// Reductions in the network.
    pub collnet_enable: c_int,
    /// `CTA_POLICY_*`.
    pub cta_policy: c_int,
    /// Do communicators of a shrink share resources?
    pub shrink_share: c_int,
    /// Blocks of kernels that use the switch.
    pub nvls_ctas: c_int,
    /// Network channels for a pair of ranks.
    pub n_channels_per_net_peer: c_int,
    /// Schedules by NVLink.
    pub nvlink_centric_sched: c_int,
    /// 0: no graphs; 1: one graph and nothing else; 2: graphs and eager calls in any mixture.
    pub graph_usage_mode: c_int,
    /// Contexts of one-sided calls.
    pub num_rma_ctx: c_int,
    /// Most peers of point-to-point calls.
    pub max_p2p_peers: c_int,
    /// Are kernels of a graph being captured put in one order?
    pub graph_stream_ordering: c_int,
    /// Does the order of launches order communicators?
    pub launch_order_implicit: c_int,
    /// Signals of one-sided calls.
    pub num_rma_sig: c_int,
    /// Are one-sided calls set up with the communicator?
    pub rma_eager_init: c_int,
    /// Copies by the fabric.
    pub host_cft_mode: c_int,
    /// Which uses of the switch are off: [`NVLS_DISABLE`](super::NVLS_DISABLE) for all.
    pub nvls_host_mode: c_int,
}

/// `ncclCollConfig_t`: how one call runs, in the layout of 2.31, which 2.32 only adds to. Every rank
/// gives the same; the library checks it in the rank alone. It is read before the call returns.
/// By its change log, RCCL has it from 2.31.2 on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollConfig {
    /// Bytes that are stated.
    pub size: usize,
    /// By it a library tells that the structure was initialised.
    pub magic: c_uint,
    /// [`Version::number`] of the layout that is stated.
    pub version: c_uint,
    /// A list of other vendors' options: null.
    pub ext: *mut c_void,
    /// Least blocks.
    pub min_ctas: c_int,
    /// Most blocks; no more than the communicator's.
    pub max_ctas: c_int,
    /// Most blocks of kernels that use the switch.
    pub nvls_ctas: c_int,
    /// Blocks of a cluster; the same in all calls of a group of calls.
    pub cga_cluster_size: c_int,
    /// Names of algorithms, separated by commas, in either case; null leaves it to the library. A
    /// name stands for all that begin with it: `ring` is its three protocols, `nvls` is `NVLS_SIMPLE`
    /// and `NVLSTREE_SIMPLE`, and `RING_LL` is `RING_LL128` too, so that neither it nor `TREE_LL` can
    /// be had alone. `^` before a name adds all others. As 2.32.3 resolves them:
    ///
    /// - all-reduce: `TREE_LL TREE_LL128 TREE_SIMPLE RING_LL RING_LL128 RING_SIMPLE
    ///   COLLNET_DIRECT_SIMPLE COLLNET_CHAIN_SIMPLE NVLS_SIMPLE NVLSTREE_SIMPLE` and, over symmetric
    ///   windows, `SYMK_AGxLL_R SYMK_AGxLLMC_R SYMK_RSxLD_AGxST SYMK_RSxTmaLD_AGxTmaST
    ///   SYMK_RSxLDMC_AGxSTMC`;
    /// - all-gather and reduce-scatter: the `RING_*`, `COLLNET_DIRECT_SIMPLE NVLS_SIMPLE PAT_SIMPLE`
    ///   and `SYMK_*` of their own;
    /// - broadcast: the `RING_*`.
    pub alg_selection: *const c_char,
    /// 1: an error if none of them can run; 0: the library's own choice then.
    pub force_alg_selection: c_int,
    /// `CTA_POLICY_*`.
    pub cta_policy: c_int,
    /// What profilers are told: 0.
    pub user_profiler_tag: u64,
}

impl Config {
    /// Everything is left to the library, in the layout of 2.14, the oldest.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            size: offset_of!(Self, min_ctas),
            magic: MAGIC,
            version: Version::new(2, 14, 0).number() as c_uint,
            blocking: UNDEFINED,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: ptr::null(),
            split_share: UNDEFINED,
            traffic_class: UNDEFINED,
            comm_name: ptr::null(),
            collnet_enable: UNDEFINED,
            cta_policy: UNDEFINED,
            shrink_share: UNDEFINED,
            nvls_ctas: UNDEFINED,
            n_channels_per_net_peer: UNDEFINED,
            nvlink_centric_sched: UNDEFINED,
            graph_usage_mode: UNDEFINED,
            num_rma_ctx: UNDEFINED,
            max_p2p_peers: UNDEFINED,
            graph_stream_ordering: UNDEFINED,
            launch_order_implicit: UNDEFINED,
            num_rma_sig: UNDEFINED,
            rma_eager_init: UNDEFINED,
            host_cft_mode: UNDEFINED,
            nvls_host_mode: UNDEFINED,
        }
    }

    /// The release that has all that was set. An older one leaves the rest out without a word, so a
    /// caller who must have it compares this with [`Library::version`](crate::Library::version).
    #[must_use]
    pub const fn since(&self) -> Version {
        match Version::from_number(self.version as c_int) {
            Some(version) => version,
            None => Version::new(2, 14, 0),
        }
    }

    /// Do calls that wait for peers block? Since 2.14.
    #[must_use]
    pub const fn blocking(mut self, blocks: bool) -> Self {
        self.blocking = blocks as c_int;
        self
    }

    /// Blocks of a cluster, 0 to 8. Since 2.17.
    #[must_use]
    pub const fn cga_cluster_size(mut self, blocks: c_int) -> Self {
        self.cga_cluster_size = blocks;
        self.state(offset_of!(Self, split_share), Version::new(2, 17, 0))
    }

    /// Least and most blocks of a kernel, 1 or more. Since 2.17.
    #[must_use]
    pub const fn ctas(mut self, least: c_int, most: c_int) -> Self {
        self.min_ctas = least;
        self.max_ctas = most;
        self.state(offset_of!(Self, split_share), Version::new(2, 17, 0))
    }

    /// `CTA_POLICY_*`. Since 2.27.
    #[must_use]
    pub const fn cta_policy(mut self, policy: c_int) -> Self {
        self.cta_policy = policy;
        self.state(offset_of!(Self, n_channels_per_net_peer), Version::new(2, 27, 0))
    }

    /// Blocks of kernels that use the switch, 1 or more. Since 2.27.
    #[must_use]
    pub const fn nvls_ctas(mut self, blocks: c_int) -> Self {
        self.nvls_ctas = blocks;
        self.state(offset_of!(Self, n_channels_per_net_peer), Version::new(2, 27, 0))
    }

    /// What graphs there will be, 0 to 2: see the field. Since 2.29.
    #[must_use]
    pub const fn graph_usage_mode(mut self, mode: c_int) -> Self {
        self.graph_usage_mode = mode;
        self.state(offset_of!(Self, max_p2p_peers), Version::new(2, 29, 0))
    }

    /// Which uses of the switch are off. Since 2.32.
    #[must_use]
    pub const fn nvls_host_mode(mut self, mode: c_int) -> Self {
        self.nvls_host_mode = mode;
        self.state(size_of::<Self>(), Version::new(2, 32, 0))
    }

    /// States at least this much.
    const fn state(mut self, size: usize, since: Version) -> Self {
        if self.size < size {
            self.size = size;
            self.version = since.number() as c_uint;
        }
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl CollConfig {
    /// Everything is left to the library.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            size: size_of::<Self>(),
            magic: MAGIC,
            version: Version::new(2, 31, 0).number() as c_uint,
            ext: ptr::null_mut(),
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            nvls_ctas: UNDEFINED,
            cga_cluster_size: UNDEFINED,
            alg_selection: ptr::null(),
            force_alg_selection: 1,
            cta_policy: UNDEFINED,
            user_profiler_tag: 0,
        }
    }

    /// Least and most blocks, 1 or more: with both the same, the call's are pinned.
    #[must_use]
    pub const fn ctas(mut self, least: c_int, most: c_int) -> Self {
        self.min_ctas = least;
        self.max_ctas = most;
        self
    }

    /// Only these algorithms: an error if none of them can run. For the names, see the field.
    #[must_use]
    pub const fn algorithms(mut self, names: &'static CStr) -> Self {
        self.alg_selection = names.as_ptr();
        self
    }
}

impl Default for CollConfig {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_layout_that_has_what_was_set_is_stated() {
        let stated = |config: Config| (config.size, config.since().to_string());
        // Sizes of `ncclConfig_t` in the headers of 2.14.3, 2.17.1, 2.27.3, 2.29.2 and 2.32.3.
        assert_eq!(stated(Config::new().blocking(false)), (24, "2.14.0".to_owned()));
        assert_eq!(stated(Config::new().ctas(1, 8)), (40, "2.17.0".to_owned()));
        assert_eq!(stated(Config::new().nvls_ctas(4)), (72, "2.27.0".to_owned()));
        assert_eq!(stated(Config::new().graph_usage_mode(1)), (88, "2.29.0".to_owned()));
        let newest = Config::new().nvls_host_mode(1);
        assert_eq!(stated(newest), (120, "2.32.0".to_owned()));
        assert_eq!(stated(newest.ctas(2, 2)), (120, "2.32.0".to_owned()));
        assert_eq!(size_of::<CollConfig>(), 64); // of 2.31.2
    }
}
