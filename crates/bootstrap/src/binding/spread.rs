//! How ranks are laid over nodes, cores and processors.

use std::ops::Range;

use super::machine::{Core, Node};

/// The kind of place that ranks get.
pub(super) enum Place {
    /// Several nodes each.
    Several,
    /// One processor each, which others have as well.
    Turns,
    /// A part of one node each: so many ranks are on each node, in the ranks' order.
    Within(Vec<usize>),
}

/// Where `ranks` ranks of `threads` threads each go.
pub(super) fn over(nodes: &[Node], ranks: usize, threads: usize) -> Place {
    let cores = |each: usize| nodes.iter().map(|node| node.len() / each).collect::<Vec<_>>();
    let processors = |each| nodes.iter().map(|node| node.concat().len() / each).collect::<Vec<_>>();
    // A core for each thread, or else a processor for each thread and no core of two ranks.
    let narrowest = nodes.iter().flatten().map(Vec::len).min().unwrap_or(1);
    let roomy = [cores(threads), cores(threads.div_ceil(narrowest))];
    if let Some(counts) = roomy.iter().find_map(|room| evenly(room, ranks)) {
        return Place::Within(counts);
    }
    if ranks < nodes.len() {
        return Place::Several;
    }
    // Now threads take turns, or ranks share cores, or both.
    let tight = [cores(1), processors(threads), processors(1)];
    tight.iter().find_map(|room| evenly(room, ranks)).map_or(Place::Turns, Place::Within)
}

/// How many ranks each node gets, as evenly as its room for them allows; `None` without room for
/// all. Nodes that get one more than others lie far from each other.
fn evenly(room: &[usize], ranks: usize) -> Option<Vec<usize>> {
    if room.iter().sum::<usize>() < ranks {
        return None;
    }
    let mut counts = vec![0; room.len()];
    let mut left = ranks;
    while left > 0 {
        let open: Vec<usize> = (0..room.len()).filter(|n| counts[*n] < room[*n]).collect();
        let now = left.min(open.len());
        (0..now).for_each(|i| counts[open[i * open.len() / now]] += 1);
        left -= now;
    }
    Some(counts)
}

/// The processor of a rank where ranks outnumber them. One processor of each core comes first, and
/// the nodes take turns, so that no node, and no core of a node, has many more ranks than another.
pub(super) fn turn(nodes: &[Node], rank: usize) -> usize {
    let mut order: Vec<[usize; 4]> = Vec::new();
    for (at_node, node) in nodes.iter().enumerate() {
        for (at_core, core) in node.iter().enumerate() {
            let threads = core.iter().enumerate();
            order.extend(threads.map(|(thread, number)| [thread, at_core, at_node, *number]));
        }
    }
    order.sort_unstable();
    let [.., processor] = order[rank % order.len()];
    processor
}

/// The processors of a rank that gets several nodes.
pub(super) fn several(nodes: &[Node], rank: usize, ranks: usize) -> Vec<usize> {
    nodes[cut(nodes.len(), rank, ranks)].concat().concat()
}

/// The processors of a rank that gets a part of a node.
pub(super) fn within(nodes: &[Node], counts: &[usize], mut rank: usize) -> Vec<usize> {
    for (node, count) in nodes.iter().zip(counts) {
        if rank < *count {
            return part(node, rank, *count);
        }
        rank -= count;
    }
    unreachable!("counts add up to the number of ranks")
}

/// Part `index` of `parts` of a node: whole cores, if there are as many as parts.
fn part(node: &Node, index: usize, parts: usize) -> Vec<usize> {
    if node.len() < parts {
        let processors = node.concat();
        return processors[cut(processors.len(), index, parts)].to_vec();
    }
    let mut kinds: Vec<usize> = node.iter().map(Vec::len).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut mine = Vec::new();
    // What does not divide goes to the parts in turn, from kind to kind, the widest first.
    let mut next = 0;
    for kind in kinds.into_iter().rev() {
        let cores: Vec<&Core> = node.iter().filter(|core| core.len() == kind).collect();
        let (each, over) = (cores.len() / parts, cores.len() % parts);
        let turn = |part: usize| (part + parts - next) % parts;
        let size = |part: usize| each + usize::from(turn(part) < over);
        let first: usize = (0..index).map(size).sum();
        mine.extend(cores[first..first + size(index)].iter().copied().flatten());
        next = (next + over) % parts;
    }
    mine
}

/// Piece `index` of `pieces` of a length: pieces differ by at most one.
fn cut(length: usize, index: usize, pieces: usize) -> Range<usize> {
    index * length / pieces..(index + 1) * length / pieces
}
