//! This node's own addresses, as the kernel lists them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// This node's addresses that other nodes may reach: no loopback, no link-local ones.
pub fn own() -> Vec<IpAddr> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut all: Vec<IpAddr> =
        ipv4(&read("/proc/net/fib_trie")).into_iter().map(IpAddr::V4).collect();
    all.extend(ipv6(&read("/proc/net/if_inet6")).into_iter().map(IpAddr::V6));
    all
}

/// In the routing trie a node's own address is a leaf, followed by its `/32 host LOCAL` route.
fn ipv4(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut all = Vec::new();
    let mut leaf = None;
    for line in fib_trie.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            all.extend(leaf.take().filter(|a| !a.is_loopback() && !a.is_link_local()));
        }
    }
    // The trie is printed once for each routing table.
    all.sort_unstable();
    all.dedup();
    all
}

/// One address a line: 32 hexadecimal digits, then index, prefix, scope, flags and name.
fn ipv6(if_inet6: &str) -> Vec<Ipv6Addr> {
    let digits = if_inet6.lines().filter_map(|line| line.split_whitespace().next());
    let all = digits.filter_map(|digits| u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from));
    all.filter(|a| !a.is_loopback() && !a.is_unicast_link_local()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let fib_trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
            |-- 10.0.0.7\n           /32 host LOCAL\n     |-- 10.0.0.255\n           /32 link BROADCAST\n\
            Local:\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.0.0.7\n           /32 host LOCAL\n";
        assert_eq!(ipv4(fib_trie), [Ipv4Addr::new(10, 0, 0, 7)]);
        let if_inet6 = "00000000000000000000000000000001 01 80 10 80       lo\n\
            fe800000000000000042acfffe110002 0c 40 20 80     eth0\n\
            fd000000000000000000000000000005 0c 40 00 80     eth0\n";
        assert_eq!(ipv6(if_inet6), ["fd00::5".parse::<Ipv6Addr>().unwrap()]);
    }
}
