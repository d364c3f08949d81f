//! Kernels name no vendor: what differs between platforms is in their `platform.h` alone.

/// The sources that every platform compiles.
const COMMON: &str = "kernels-common/";

/// Words of one vendor, or beginnings of them.
const VENDORS: [&str; 17] = [
    "asm",
    "__asm__",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "__syncthreads",
    "__threadfence",
    "__shfl",
    "__ldg",
    "__global__",
    "__device__",
    "__shared__",
    "__launch_bounds__",
    "__builtin_amdgcn",
    "__scoped_atomic",
    "__hip",
];
/// Macros that tell a vendor's compiler.
const COMPILERS: [&str; 4] = ["__CUDA", "__NVCC__", "__HIP", "__AMDGCN"];

/// Adds a finding for every word of a vendor in a source that all platforms compile.
pub(super) fn check(name: &str, text: &str, findings: &mut Vec<String>) {
    if !name.starts_with(COMMON) {
        return;
    }
    for (at, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        for word in code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| is_vendors(w))
        {
            findings.push(format!(
                "{name}:{at}: `{word}` is one vendor's: give each platform.h a function for it"
            ));
        }
    }
}

fn is_vendors(word: &str) -> bool {
    let is_begun = |it: &str| word.starts_with(it) && (it != "asm" || word == "asm");
    VENDORS.iter().chain(&COMPILERS).any(|it| is_begun(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendors_word_is_found_outside_comments_alone() {
        let found = |name: &str, line: &str| {
            let mut findings = Vec::new();
            check(name, line, &mut findings);
            findings.len()
        };
        let name = "kernels-common/crossover/wait.h";
        for line in
            ["asm volatile(\"\");", "x = threadIdx.x;", "__shfl_sync(a, b, c);", "#ifdef __HIP__"]
        {
            assert_eq!(found(name, line), 1, "{line}");
            assert_eq!(found("kernels-cuda/platform.h", line), 0, "{line}");
        }
        for line in ["// as threadIdx", "asm_like();", "store_pack(to, pack);"] {
            assert_eq!(found(name, line), 0, "{line}");
        }
    }
}
