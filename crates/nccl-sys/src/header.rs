//! Layouts, numbers and signatures against the headers of the pinned NCCL (`cargo xtask nccl`) and
//! RCCL (`cargo xtask rccl`): C programs say what a header says. RCCL's is of an older line: what it
//! has not yet is listed here, so that a header that gains it is noticed.

#![allow(clippy::print_stderr, reason = "says why a test skips")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::layout::*;
use crate::table::{Calls, Optional};

/// A line of the tables: the symbol, what it takes, what it returns.
type Signature = (&'static str, &'static [&'static str], &'static str);

/// What RCCL's pinned header has not: later releases do, as NCCL's.
const NOT_OF_RCCL: &[&str] = &[
    "ncclCollConfig_t",
    "ncclTimeout",
    "ncclNvlsHostModeDisable",
    "NCCL_WIN_REQUIRED_ALIGNMENT",
    "NCCL_CTA_POLICY_ZERO",
    "nChannelsPerNetPeer",
    "nvlinkCentricSched",
    "graphUsageMode",
    "numRmaCtx",
    "maxP2pPeers",
    "graphStreamOrdering",
    "launchOrderImplicit",
    "numRmaSig",
    "rmaEagerInit",
    "hostCftMode",
    "nvlsHostMode",
];

#[test]
fn numbers_and_layouts_are_those_of_nccls_header() {
    let Some(header) = Header::nccl() else { return };
    header.says(&numbers());
}

#[test]
fn numbers_and_layouts_are_those_of_rccls_header() {
    let Some(header) = Header::rccl() else { return };
    let mut ours = numbers();
    ours.retain(|name, _| !NOT_OF_RCCL.iter().any(|lacking| name.contains(lacking)));
    // It ends where ours of 2.27 does.
    let config = Config::new().nvls_ctas(1);
    assert_eq!(config.since().minor(), 27);
    ours.insert("sizeof(ncclConfig_t)", config.size as i64);
    header.says(&ours);
    for lacking in NOT_OF_RCCL {
        assert!(!header.text().contains(lacking), "RCCL's header has {lacking}: compare it too");
    }
}

/// What a C program says of each expression, if ours is the header's.
fn numbers() -> BTreeMap<&'static str, i64> {
    let config = size_of::<Config>();
    let mut ours = BTreeMap::from([
        ("sizeof(ncclUniqueId)", size_of::<UniqueId>() as i64),
        ("sizeof(ncclConfig_t)", config as i64),
        ("offsetof(ncclCollConfig_t, launchCompletionEvent)", size_of::<CollConfig>() as i64),
        ("sizeof(ncclResult_t)", size_of::<Status>() as i64),
        ("sizeof(ncclDataType_t)", size_of::<DataType>() as i64),
        ("sizeof(ncclRedOp_t)", size_of::<RedOp>() as i64),
        ("NCCL_CONFIG_UNDEF_INT", UNDEFINED.into()),
        ("NCCL_WIN_DEFAULT", WINDOW_DEFAULT.into()),
        ("NCCL_WIN_COLL_SYMMETRIC", WINDOW_COLLECTIVE_SYMMETRIC.into()),
        ("NCCL_WIN_REQUIRED_ALIGNMENT", WINDOW_ALIGNMENT as i64),
        ("NCCL_CTA_POLICY_DEFAULT", CTA_POLICY_DEFAULT.into()),
        ("NCCL_CTA_POLICY_EFFICIENCY", CTA_POLICY_EFFICIENCY.into()),
        ("NCCL_CTA_POLICY_ZERO", CTA_POLICY_ZERO.into()),
        ("ncclNvlsHostModeDisable", NVLS_DISABLE.into()),
        ("NCCL_SPLIT_NOCOLOR", SPLIT_NO_COLOR.into()),
    ]);
    let statuses = [
        ("ncclSuccess", Status::SUCCESS),
        ("ncclUnhandledCudaError", Status::UNHANDLED_CUDA_ERROR),
        ("ncclSystemError", Status::SYSTEM_ERROR),
        ("ncclInternalError", Status::INTERNAL_ERROR),
        ("ncclInvalidArgument", Status::INVALID_ARGUMENT),
        ("ncclInvalidUsage", Status::INVALID_USAGE),
        ("ncclRemoteError", Status::REMOTE_ERROR),
        ("ncclInProgress", Status::IN_PROGRESS),
        ("ncclTimeout", Status::TIMEOUT),
    ];
    ours.extend(statuses.map(|(name, status)| (name, status.0.into())));
    let types = [
        ("ncclInt8", DataType::I8),
        ("ncclUint8", DataType::U8),
        ("ncclInt32", DataType::I32),
        ("ncclUint32", DataType::U32),
        ("ncclInt64", DataType::I64),
        ("ncclUint64", DataType::U64),
        ("ncclFloat16", DataType::F16),
        ("ncclFloat32", DataType::F32),
        ("ncclFloat64", DataType::F64),
        ("ncclBfloat16", DataType::BF16),
        ("ncclFloat8e4m3", DataType::F8E4M3),
        ("ncclFloat8e5m2", DataType::F8E5M2),
    ];
    ours.extend(types.map(|(name, kind)| (name, kind.0.into())));
    let ops = [
        ("ncclSum", RedOp::SUM),
        ("ncclProd", RedOp::PROD),
        ("ncclMax", RedOp::MAX),
        ("ncclMin", RedOp::MIN),
        ("ncclAvg", RedOp::AVG),
    ];
    ours.extend(ops.map(|(name, op)| (name, op.0.into())));
    macro_rules! fields {
        ($rust:ident, $c:literal: $($field:ident $name:literal,)*) => {
            ours.extend([$((
                concat!("offsetof(", $c, ", ", $name, ")"),
                offset_of!($rust, $field) as i64,
            )),*]);
        };
    }
    fields! { Config, "ncclConfig_t":
        size "size", magic "magic", version "version", blocking "blocking",
        cga_cluster_size "cgaClusterSize", min_ctas "minCTAs", max_ctas "maxCTAs",
        net_name "netName", split_share "splitShare", traffic_class "trafficClass",
        comm_name "commName", collnet_enable "collnetEnable", cta_policy "CTAPolicy",
        shrink_share "shrinkShare", nvls_ctas "nvlsCTAs",
        n_channels_per_net_peer "nChannelsPerNetPeer", nvlink_centric_sched "nvlinkCentricSched",
        graph_usage_mode "graphUsageMode", num_rma_ctx "numRmaCtx", max_p2p_peers "maxP2pPeers",
        graph_stream_ordering "graphStreamOrdering", launch_order_implicit "launchOrderImplicit",
        num_rma_sig "numRmaSig", rma_eager_init "rmaEagerInit", host_cft_mode "hostCftMode",
        nvls_host_mode "nvlsHostMode",
    }
    fields! { CollConfig, "ncclCollConfig_t":
        size "size", magic "magic", version "version", ext "ext", min_ctas "minCTAs",
        max_ctas "maxCTAs", nvls_ctas "nvlsCTAs", cga_cluster_size "cgaClusterSize",
        alg_selection "algSelection", force_alg_selection "forceAlgSelection",
        cta_policy "CTAPolicy", user_profiler_tag "userProfilerTag",
    }
    ours
}

#[test]
fn what_is_left_to_the_library_is_what_the_header_leaves_to_it() {
    // Both begin with size, magic and version, of which only magic is to be equal.
    let Some(header) = Header::nccl() else { return };
    let program = "static void say(const void *bytes, size_t until) {
          for (size_t at = 16; at < until; ++at) printf(\"%02x\", ((const unsigned char *)bytes)[at]);
          printf(\"\\n\");
        }
        int main(void) {
          ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
          ncclCollConfig_t coll = NCCL_COLLCONFIG_INITIALIZER;
          printf(\"%u %u\\n\", config.magic, coll.magic);
          say(&config, offsetof(ncclConfig_t, nvlsHostMode) + sizeof(int));
          say(&coll, offsetof(ncclCollConfig_t, launchCompletionEvent));
          return 0;
        }";
    let Some(said) = header.run(program) else { return };
    let (config, coll) = (Config::new(), CollConfig::new());
    let until = offset_of!(Config, nvls_host_mode) + size_of::<i32>();
    let ours = format!(
        "{} {}\n{}\n{}\n",
        config.magic,
        coll.magic,
        hex((&raw const config).cast(), until),
        hex((&raw const coll).cast(), size_of::<CollConfig>()),
    );
    assert_eq!(ours, said);
}

#[test]
fn what_is_left_to_rccl_is_what_its_header_leaves_to_it() {
    let Some(header) = Header::rccl() else { return };
    let program = "int main(void) {
          ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
          printf(\"%u \", config.magic);
          for (size_t at = 16; at < sizeof config; ++at)
            printf(\"%02x\", ((const unsigned char *)&config)[at]);
          return 0;
        }";
    let Some(said) = header.run(program) else { return };
    let config = Config::new().nvls_ctas(UNDEFINED);
    let ours = format!("{} {}", config.magic, hex((&raw const config).cast(), config.size));
    assert_eq!(ours, said);
}

/// What a configuration holds behind what states its size and version.
fn hex(from: *const u8, until: usize) -> String {
    // SAFETY: the structures are longer, and have no padding before `until`.
    let bytes = unsafe { std::slice::from_raw_parts(from, until) };
    bytes[16..].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn signatures_are_those_of_the_headers() {
    for header in [Header::nccl(), Header::rccl()].into_iter().flatten() {
        let lacks = |symbol: &str| !header.text().contains(&format!(" {symbol}("));
        let table = Calls::SIGNATURES.iter().chain(Optional::SIGNATURES);
        let (lacking, had): (Vec<&Signature>, Vec<&Signature>) =
            table.partition(|(symbol, ..)| lacks(symbol));
        let lacking: Vec<_> = lacking.iter().map(|(symbol, ..)| *symbol).collect();
        assert_eq!(lacking, header.lacks, "{}", header.include.display());
        header.declares(&had);
    }
}

impl Header {
    /// Judged by the compiler.
    fn declares(&self, table: &[&Signature]) {
        let mut program = String::new();
        for (symbol, takes, returns) in table {
            let takes = match takes {
                [] => "void".to_owned(),
                _ => takes.iter().map(|it| c_type(it)).collect::<Vec<_>>().join(", "),
            };
            let returns = c_type(returns);
            let _ = writeln!(
                program,
                "_Static_assert(__builtin_types_compatible_p(__typeof__(&{symbol}), \
             {returns} (*)({takes})), \"{symbol}\");"
            );
        }
        program.push_str("int main(void) { return 0; }");
        assert!(self.run(&program).is_none_or(|said| said.is_empty()));
    }
}

/// A type of the tables, as the header calls it.
fn c_type(ours: &str) -> String {
    if let Some(pointee) = ours.strip_prefix("*const ") {
        return format!("const {}*", c_type(pointee));
    }
    if let Some(pointee) = ours.strip_prefix("*mut ") {
        return format!("{}*", c_type(pointee));
    }
    let theirs = match ours {
        "c_int" => "int",
        "c_char" => "char",
        "c_void" => "void",
        "usize" => "size_t",
        "Status" => "ncclResult_t",
        "DataType" => "ncclDataType_t",
        "RedOp" => "ncclRedOp_t",
        "UniqueId" => "ncclUniqueId",
        "Comm" => "ncclComm_t",
        "Window" => "ncclWindow_t",
        "Stream" => "cudaStream_t",
        "Config" => "ncclConfig_t",
        "CollConfig" => "ncclCollConfig_t",
        _ => panic!("{ours}: say what the header calls it"),
    };
    theirs.to_owned()
}

/// A pinned header, and what a program needs before it.
struct Header {
    /// The folder.
    include: PathBuf,
    /// Within it.
    name: &'static str,
    /// What it includes of the vendor's, each with what it needs of it: all are handles.
    stubs: &'static [(&'static str, &'static str)],
    /// Functions of the tables that it does not have.
    lacks: &'static [&'static str],
}

impl Header {
    /// NCCL's, if it was fetched.
    fn nccl() -> Option<Self> {
        const CUDA: &str =
            "typedef struct CUstream_st *cudaStream_t; typedef struct CUevent_st *cudaEvent_t;";
        let stubs = &[("cuda_runtime.h", CUDA), ("cuda_fp16.h", ""), ("cuda_bf16.h", "")] as &[_];
        Self::fetched(
            "nccl-2.32.3",
            Self { include: PathBuf::new(), name: "nccl.h", stubs, lacks: &[] },
        )
    }

    /// RCCL's, if it was fetched.
    fn rccl() -> Option<Self> {
        const HIP: &str =
            "typedef struct ihipStream_t *hipStream_t;\n#define cudaStream_t hipStream_t";
        let stubs = &[("hip/hip_runtime.h", HIP), ("hip/hip_fp16.h", "")] as &[_];
        let lacks = &[
            "ncclAllReduceConfig",
            "ncclAllGatherConfig",
            "ncclReduceScatterConfig",
            "ncclBroadcastConfig",
        ];
        Self::fetched(
            "rccl-2.27.7",
            Self { include: PathBuf::new(), name: "rccl/rccl.h", stubs, lacks },
        )
    }

    fn fetched(folder: &str, header: Self) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let include = root.join("target/toolchains").join(folder).join("include");
        if !include.join(header.name).exists() {
            let task = &folder[..4];
            eprintln!("skipped: no header of {folder} (cargo xtask {task} fetches it)");
            return None;
        }
        Some(Self { include, ..header })
    }

    fn text(&self) -> String {
        fs::read_to_string(self.include.join(self.name)).unwrap()
    }

    /// Every expression has the value.
    fn says(&self, ours: &BTreeMap<&str, i64>) {
        let says: String = ours.keys().fold(String::new(), |mut text, name| {
            let _ = writeln!(text, "printf(\"%lld\\n\", (long long)({name}));");
            text
        });
        let program = format!("int main(void) {{ {says} return 0; }}");
        let Some(said) = self.run(&program) else { return };
        assert_eq!(said.lines().count(), ours.len());
        for ((name, value), theirs) in ours.iter().zip(said.lines()) {
            assert_eq!(value.to_string(), theirs, "{name}");
        }
    }

    /// What a C program prints that includes it.
    fn run(&self, program: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (stub, text) in self.stubs {
            fs::create_dir_all(at(stub).parent().unwrap()).unwrap();
            fs::write(at(stub), text).unwrap();
        }
        let includes =
            format!("#include <stddef.h>\n#include <stdio.h>\n#include <{}>\n", self.name);
        fs::write(at("say.c"), includes + program).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Werror", "-I"]).arg(folder.path());
        cc.arg("-I").arg(&self.include);
        let built = match cc.arg("-o").arg(at("say")).arg(at("say.c")).output() {
            Ok(built) => built,
            Err(why) => {
                eprintln!("skipped: no C compiler: {why}");
                return None;
            }
        };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // Signatures are judged by the compiler: then there is nothing to link, and it does.
        let said = Command::new(at("say")).output().unwrap();
        assert!(said.status.success());
        Some(String::from_utf8(said.stdout).unwrap())
    }
}
