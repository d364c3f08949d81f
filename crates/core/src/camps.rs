//! Who is odd, where ranks should be alike: the majority says, and a tie names both sides.

use crate::bootstrap::ranks_in_words;

/// The first field in which ranks differ, who has which value, the odd ones first: "rank 1 has count
/// 9, ranks 0, 2 and 3 have 7". `values` has for each rank, in rank order, each field's value in words.
/// `None` if all are alike.
pub fn first_difference(fields: &[&str], values: &[Vec<String>]) -> Option<String> {
    (0..fields.len()).find_map(|at| {
        let camps = camps(values.iter().map(|values| &values[at]));
        (camps.len() > 1).then(|| sentence(fields[at], &camps))
    })
}

/// Ranks by value: smaller camps first, equally large ones by their first rank.
pub fn camps<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<(T, Vec<u32>)> {
    let mut camps: Vec<(T, Vec<u32>)> = Vec::new();
    for (rank, value) in (0..).zip(values) {
        match camps.iter_mut().find(|(v, _)| *v == value) {
            Some((_, ranks)) => ranks.push(rank),
            None => camps.push((value, vec![rank])),
        }
    }
    camps.sort_by_key(|(_, ranks)| ranks.len());
    camps
}

fn sentence(field: &str, camps: &[(&String, Vec<u32>)]) -> String {
    let clause = |(at, (value, ranks)): (usize, &(&String, Vec<u32>))| {
        let verb = if ranks.len() == 1 { "has" } else { "have" };
        let field = if at == 0 { format!("{field} ") } else { String::new() };
        format!("{} {verb} {field}{value}", ranks_in_words(ranks))
    };
    camps.iter().enumerate().map(clause).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_majority_says_who_is_odd_and_a_tie_names_both() {
        check([7, 9, 7, 7], Some("rank 1 has count 9, ranks 0, 2 and 3 have 7"));
        check([7, 7, 9, 9], Some("ranks 0 and 1 have count 7, ranks 2 and 3 have 9"));
        check([7, 8], Some("rank 0 has count 7, rank 1 has 8"));
        check([5, 6, 7, 7], Some("rank 0 has count 5, rank 1 has 6, ranks 2 and 3 have 7"));
        check([7, 7, 7], None);
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let values = [["broadcast", "1"], ["all_gather", "2"]];
        let values = values.map(|words| words.map(str::to_owned).to_vec());
        let said = first_difference(&["op", "count"], &values);
        assert_eq!(said.as_deref(), Some("rank 0 has op broadcast, rank 1 has all_gather"));
    }

    #[track_caller]
    fn check<const N: usize>(counts: [usize; N], expected: Option<&str>) {
        let values = counts.map(|n| vec![n.to_string()]);
        assert_eq!(first_difference(&["count"], &values).as_deref(), expected);
    }
}
