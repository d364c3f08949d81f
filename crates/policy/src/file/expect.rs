//! `[[expect]]`: a policy's own tests.

use std::ops::Range;

use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Contract, Deviation, Deviations};
use crossover_core::facts::{Cap, Caps, GroupProfile, Topology};
use crossover_core::policy::{Layer, Origin};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, in_order};
use super::{candidate, matching};
use crate::diagnostic::Code;
use crate::group::StatedGroup;
use crate::target::Target;

const KEYS: [&str; 15] = [
    "op",
    "arch",
    "world",
    "nodes",
    "mode",
    "topology",
    "caps",
    "group",
    "device",
    "dtype",
    "reduce_op",
    "accept",
    "determinism",
    "bytes",
    "use",
];
const REQUIRED: [&str; 3] = ["op", "bytes", "use"];
/// As `use`: nothing serves.
const NOTHING: &str = "none";

/// An `[[expect]]` block: a call of a group, and who must serve it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expect {
    /// Where it is written.
    pub(crate) origin: Origin,
    /// The layer of the file.
    pub(crate) layer: Layer,
    /// Is it in a shipped file that other files include, and that nobody named?
    pub(crate) included: bool,
    /// Where its `use` is, in bytes.
    pub(crate) span: Range<usize>,
    /// The group; what the block leaves out is as `crossover explain` has it.
    pub(crate) group: GroupProfile,
    /// The call, with the contract that the block states for the engine.
    pub(crate) call: CallKind,
    /// Its input bytes per rank.
    pub(crate) bytes: u64,
    /// `backend/algorithm`, or a backend that serves by any of its algorithms; `None` if nothing
    /// must serve (`use = "none"`).
    pub(crate) target: Option<Target>,
}

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<Expect> {
    let Some(blocks) = value.get_ref().as_array() else {
        return reader
            .mistyped("expect", "blocks, each under `[[expect]]`", value)
            .unwrap_or_default();
    };
    let block = |item: &Spanned<DeValue<'_>>| {
        let table = reader.table("expect", item)?;
        read_block(reader, item.span(), table)
    };
    blocks.iter().filter_map(block).collect()
}

fn read_block(reader: &mut Reader<'_>, span: Range<usize>, table: &DeTable<'_>) -> Option<Expect> {
    let mut group = StatedGroup::default();
    let (mut op, mut bytes, mut target) = (None, None, None);
    let (mut dtype, mut reduce_op, mut mode) = (Dtype::Bf16, ReduceOp::Sum, Mode::Eager);
    let mut engine = Contract::DEFAULT;
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "op" => op = reader.word::<Op>("op", value),
            "arch" => group.arch = architecture(reader, value),
            "world" => group.world = count(reader, "world", value),
            "nodes" => group.nodes = count(reader, "nodes", value),
            "mode" => mode = reader.word("mode", value).unwrap_or(mode),
            "topology" => group.topology = reader.word::<Topology>("topology", value),
            "caps" => group.caps = Some(reader.any_words::<Cap, Caps>("caps", value)),
            "group" => group.tag = reader.text("group", value).map(str::to_owned),
            "device" => group.device = reader.text("device", value).map(str::to_owned),
            "dtype" => dtype = reader.word("dtype", value).unwrap_or(dtype),
            "reduce_op" => reduce_op = reader.word("reduce_op", value).unwrap_or(reduce_op),
            "accept" => {
                engine.accept = reader.any_words::<Deviation, Deviations>("accept", value);
            }
            "determinism" => {
                engine.determinism =
                    reader.word("determinism", value).unwrap_or(engine.determinism);
            }
            "bytes" => bytes = candidate::size(reader, value),
            "use" => target = who(reader, value).map(|target| (target, value.span())),
            _ => reader.unknown_key(key, "`[[expect]]`", &KEYS),
        }
    }
    for key in REQUIRED.iter().filter(|key| !table.contains_key(**key)) {
        let message = format!("the block does not state `{key}`");
        let help = format!("it needs {}", REQUIRED.map(|key| format!("`{key}`")).join(", "));
        reader.refuse_with_help(Code::Unknown, span.clone(), message, help);
    }
    let (target, written) = target?;
    Some(Expect {
        origin: Origin { file: reader.file().to_owned(), line: reader.line(written.start) },
        layer: reader.standing.layer,
        included: reader.standing.is_borrowed(),
        span: written,
        group: group.profile(),
        call: CallKind { op: op?, dtype, reduce_op, mode, contract: engine },
        bytes: bytes?,
        target,
    })
}

/// A group has one architecture: a family is none.
fn architecture(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let name = reader.text("arch", value)?;
    if matching::is_architecture(name) && !name.ends_with('x') {
        return Some(name.to_owned());
    }
    let message = format!("`{name}` is no architecture of a group");
    let help = "write `\"sm90\"`, `\"gfx942\"` or `\"host\"`";
    reader.refuse_with_help(Code::Unknown, value.span(), message, help);
    None
}

/// A count from 1.
fn count(reader: &mut Reader<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<u32> {
    let count = reader.integer(key, value)?;
    let positive = u32::try_from(count).ok().filter(|count| *count > 0);
    if positive.is_none() {
        let message = format!("`{key}` takes a count from 1, not {count}");
        reader.refuse(Code::Unknown, value.span(), message);
    }
    positive
}

/// Who is expected: `Some(None)` if nobody.
fn who(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Option<Target>> {
    let text = reader.text("use", value)?;
    if text == NOTHING {
        return Some(None);
    }
    let target = Target::parse(text);
    candidate::resolve(reader, &target, value.span(), reader.standing.shipped)?;
    Some(Some(target))
}

#[cfg(test)]
mod tests {
    use crossover_core::registry::Registry;

    use super::*;
    use crate::diagnostic::Source;
    use crate::file::{Document, Standing};

    fn parsed(blocks: &str) -> Vec<Expect> {
        let source = Source { name: "x.toml".to_owned(), text: format!("schema = 1\n{blocks}") };
        let standing = Standing { layer: Layer::User, shipped: true, included: true };
        let mut problems = Vec::new();
        let document = Document::parse(&source, standing, &Registry::empty(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        document.expects
    }

    #[test]
    fn blocks_state_a_call_and_leave_the_rest_as_usual() {
        let expects = parsed(
            "[[expect]]\nop = 'all_gather'\nbytes = '64KiB'\nuse = 'none'
[[expect]]
op = 'all_reduce'
arch = 'sm90'
device = 'NVIDIA H200'
world = 8
mode = 'graph'
caps = []
group = 'tp'
dtype = 'f32'
reduce_op = 'max'
accept = ['lossy_fp8']
determinism = 'any'
bytes = '1B'
use = 'none'",
        );
        let [usual, stated] = &expects[..] else { panic!("{expects:?}") };
        assert_eq!(usual.group, StatedGroup::default().profile());
        assert_eq!(
            usual.call,
            CallKind {
                op: Op::AllGather,
                dtype: Dtype::Bf16,
                reduce_op: ReduceOp::Sum,
                mode: Mode::Eager,
                contract: Contract::DEFAULT,
            }
        );
        assert_eq!((usual.bytes, &usual.target, usual.origin.line), (65_536, &None, 5));
        assert_eq!((usual.layer, usual.included), (Layer::User, true));
        let CallKind { op, dtype, reduce_op, mode, contract } = stated.call;
        assert_eq!(
            (op, dtype, reduce_op, mode),
            (Op::AllReduce, Dtype::F32, ReduceOp::Max, Mode::Graph)
        );
        assert_eq!(contract.determinism.name(), "any");
        assert_eq!(contract.accept, Deviations::of(&[Deviation::LossyFp8]));
        let GroupProfile { arch, device, world, topology, tag, caps, .. } = &stated.group;
        assert_eq!((arch.as_str(), device.as_str(), *world), ("sm90", "NVIDIA H200", 8));
        assert_eq!((*topology, tag.as_str(), *caps), (Topology::NvlinkFull, "tp", Caps::NONE));
    }
}
