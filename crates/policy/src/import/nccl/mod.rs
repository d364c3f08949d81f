//! NCCL's tuner file, as the example plug-in of NCCL 2.30 reads it: comma-separated, one row a
//! line, the first row that matches wins.

mod fields;
mod row;

use super::draft::{Draft, Overlaps};
use super::findings::{Findings, short};
use fields::{COLUMNS, Field, fields};

/// What the plug-in reads of a line at a time; what follows is a line of its own to it.
const LINE: usize = 255;

/// Are there rows, whatever becomes of them?
pub(super) fn read(findings: &mut Findings<'_>, draft: &mut Draft) -> bool {
    let mut has_rows = false;
    for (start, line) in findings.lines() {
        if line.len() > LINE {
            let length = line.len();
            let message = format!(
                "this line has {length} bytes: NCCL's plug-in takes what follows the first {LINE} \
                 for another row; here it is one line"
            );
            findings.note(start..start + line.len(), message);
        }
        let written = line.trim();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let fields = fields(start, line);
        if row::is_header(&fields) {
            header(findings, &fields);
            continue;
        }
        has_rows = true;
        if let Some(row) = row::read(findings, &fields) {
            draft.push(findings, row, Overlaps::Told);
        }
    }
    if !draft.rules.is_empty() {
        let message = "a size that no row names goes on to the layers below; NCCL would choose \
                       within the library (and its example plug-in would pin it to one channel)";
        findings.note(0..0, message);
    }
    has_rows
}

/// A line with the columns' names.
fn header(findings: &mut Findings<'_>, fields: &[Field<'_>]) {
    let span = fields[0].span.start..fields[fields.len() - 1].span.end;
    let order = COLUMNS.join(",");
    if fields.iter().any(|field| !COLUMNS.contains(&field.text)) {
        let line = findings.line(span.start);
        let message = format!("line {line} looks like a header: begin it with `#`");
        let help = format!("NCCL's plug-in takes it for a row; the order of columns is {order}");
        findings.error(span, message, help);
    } else if let Some((field, column)) =
        fields.iter().zip(COLUMNS).find(|(field, column)| field.text != *column)
    {
        let message = format!("column `{}` stands where `{column}` belongs", short(field.text));
        findings.error(field.span.clone(), message, format!("the order is fixed: {order}"));
    } else {
        let message =
            "NCCL's plug-in knows no header and takes this line for a row; here it is skipped";
        findings.note(fields[0].span.clone(), message);
    }
}
