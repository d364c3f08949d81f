//! Tables: what one states is stated of its rows, each of which is a rule.

use crossover_core::policy::Match;

use super::{Height, Stack};
use crate::file::{Fields, Said, StatedRow, StatedTable, row_id};
use crate::shipped::is_in_a_pack;

impl<'d> Stack<'d> {
    /// Lays a table: its fields over all rows that stand below, then its rows over those.
    pub(super) fn lay_table(&mut self, table: &'d StatedTable, height: &mut Height) {
        let id = &table.name.text;
        if self.by_id.contains_key(id) {
            let message = format!("`{id}` is a rule of a lower file, not a table");
            return self.refuse(&table.name, *height, message, format!("write `[rule.{id}]`"));
        }
        let is_new = !self.tables.contains_key(id);
        if is_new && is_in_a_pack(id) && (table.fields.when.is_none() || table.rows.is_empty()) {
            return;
        }
        if is_new && table.rows.is_empty() {
            let message = format!("table `{id}` has no rows, and no lower layer has that table");
            let help = crate::suggest::help(id, self.known_tables());
            return self.refuse(&table.name, *height, message, help);
        }
        let below = self.tables.remove(id).unwrap_or_default();
        let whole = below.overlaid(&table.fields);
        self.lay_over_rows_below(table, height);
        for row in &table.rows {
            self.lay_row(table, row, &whole, *height);
            height.position += 1;
        }
        self.tables.insert(id.clone(), whole);
    }

    fn lay_over_rows_below(&mut self, table: &'d StatedTable, height: &mut Height) {
        let mut fields = table.fields.clone();
        if !table.rows.is_empty() {
            // Then it is about the numbers in these rows.
            fields.evidence = None;
        }
        if fields.are_silent() {
            return;
        }
        let id = &table.name.text;
        let is_stated = |row: &str| table.rows.iter().any(|r| row_id(id, &r.name.text) == row);
        let rows = self.rows_of(id).into_iter().filter(|row| !is_stated(row));
        for row in rows.map(str::to_owned).collect::<Vec<_>>() {
            let keys = self.keys_of(&row);
            let when = fields
                .when
                .as_ref()
                .map(|when| Said { value: with_keys(&when.value, &keys), line: when.line });
            if let (Some(base), Some(both)) = (&fields.when, &when)
                && both.value.constrained() < base.value.constrained() + keys.constrained()
            {
                let message = format!("`match` states what the name of the row `{row}` states");
                let help = "take the row's key out of `match`".to_owned();
                return self.refuse(&table.name, *height, message, help);
            }
            self.restate(&row, &table.name, &Fields { when, ..fields.clone() }, None, *height);
            height.position += 1;
        }
    }

    /// Lays a row. `whole` is what this file and lower ones say of the table.
    fn lay_row(&mut self, table: &StatedTable, row: &'d StatedRow, whole: &Fields, height: Height) {
        let id = row_id(&table.name.text, &row.name.text);
        let is_below = self.by_id.contains_key(&id);
        let stated = if is_below { &table.fields } else { whole };
        let says_when = !is_below || stated.when.is_some() || self.keys_of(&id) != row.keys;
        let base = whole.when.as_ref();
        let when = says_when.then(|| Said {
            value: base.map_or(row.keys.clone(), |base| with_keys(&base.value, &row.keys)),
            line: base.map_or(row.name.line, |base| base.line),
        });
        let fields = Fields { when, evidence: table.fields.evidence.clone(), ..stated.clone() };
        if is_below {
            self.restate(&id, &row.name, &fields, Some(&row.chain), height);
        } else {
            self.add(id.clone(), &row.name, &fields, &row.chain, height);
        }
        if let Some(placed) = self.by_id.get(&id).and_then(|at| self.rules.get_mut(*at)) {
            placed.keys = row.keys.clone();
        }
    }

    fn keys_of(&self, row: &str) -> Match {
        let placed = self.by_id.get(row).and_then(|at| self.rules.get(*at));
        placed.map(|placed| placed.keys.clone()).unwrap_or_default()
    }
}

impl Fields {
    fn overlaid(self, higher: &Fields) -> Fields {
        Fields {
            when: higher.when.clone().or(self.when),
            chain: None,
            priority: higher.priority.clone().or(self.priority),
            last: higher.last.clone().or(self.last),
            enabled: higher.enabled.clone().or(self.enabled),
            evidence: higher.evidence.clone().or(self.evidence),
        }
    }

    fn are_silent(&self) -> bool {
        let Fields { when, chain, priority, last, enabled, evidence } = self;
        when.is_none()
            && chain.is_none()
            && priority.is_none()
            && last.is_none()
            && enabled.is_none()
            && evidence.is_none()
    }
}

/// A table's match and a row's.
fn with_keys(base: &Match, keys: &Match) -> Match {
    fn either<T: Clone>(key: &Option<T>, base: &Option<T>) -> Option<T> {
        key.clone().or_else(|| base.clone())
    }
    Match {
        arch: either(&keys.arch, &base.arch),
        device: either(&keys.device, &base.device),
        world: either(&keys.world, &base.world),
        nodes: either(&keys.nodes, &base.nodes),
        topology: either(&keys.topology, &base.topology),
        group: either(&keys.group, &base.group),
        caps: either(&keys.caps, &base.caps),
        op: either(&keys.op, &base.op),
        dtype: either(&keys.dtype, &base.dtype),
        reduce_op: either(&keys.reduce_op, &base.reduce_op),
        mode: either(&keys.mode, &base.mode),
    }
}
