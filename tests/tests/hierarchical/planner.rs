//! The numbers of `docs/planner.md`.

/// A rate in bytes per microsecond.
const GB: f64 = 1e3;

struct Nodes {
    nodes: f64,
    each: f64,
    /// Of a GPU inside, and of a node.
    rates: (f64, f64),
}

impl Nodes {
    fn ranks(&self) -> f64 {
        self.nodes * self.each
    }

    /// Microseconds a byte of a ring.
    fn ring(&self) -> f64 {
        2.0 * (self.ranks() - 1.0) / self.ranks() / self.rates.1
    }

    /// Microseconds a byte of two levels.
    fn two(&self) -> f64 {
        2.0 * (self.each - 1.0) / self.each / self.rates.0
            + 2.0 * (self.nodes - 1.0) / self.nodes / self.rates.1
    }

    /// The size from which two levels win, as the page has it: `None` if never.
    fn crossover(&self, inside: f64, across: f64, other: f64) -> Option<f64> {
        let fixed = 4.0 * inside + 4.0 * (self.nodes - 1.0) * across - other;
        let (l, n) = (self.each, self.ranks());
        let saved = 2.0 * (l - 1.0) / n / self.rates.1 - 2.0 * (l - 1.0) / l / self.rates.0;
        (saved > 0.0).then_some(fixed / saved)
    }
}

#[test]
fn the_planners_examples_are_its_formulas() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/planner.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    assert!(page.contains(&format!("{} S for eight ranks", 2.0 * 7.0 / 8.0)));
    for ports in [1.0, 4.0, 8.0] {
        let rates = (450.0 * GB, ports * 50.0 * GB);
        let nodes = Nodes { nodes: 2.0, each: 8.0, rates };
        let wins = rates.0 > nodes.nodes * rates.1;
        let at = nodes.crossover(3.0, 10.0, 30.0);
        assert_eq!(at.is_some(), wins, "B > M R is when bytes are saved");
        assert_eq!(nodes.two() < nodes.ring(), wins);
        let row = format!(
            "| {ports} | {} GB/s | {} | {:.1} us | {:.1} us | {} |",
            ports * 50.0,
            if wins { "yes" } else { "no" },
            nodes.ring() * 1e6,
            nodes.two() * 1e6,
            at.map_or_else(|| "never".to_owned(), |at| format!("{:.1} MB", at / 1e6)),
        );
        assert!(page.contains(&row), "{row}");
        // Where they meet, both take as long.
        if let Some(at) = at {
            let (ring, two) = (30.0 + at * nodes.ring(), 52.0 + at * nodes.two());
            assert!((ring - two).abs() < 1e-6, "{ring} {two}");
        }
    }
}
