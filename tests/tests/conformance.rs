//! Every algorithm of every backend that runs here.

crossover_tests::conformance! {
    host_one_shot => "host/one_shot",
    host_two_shot => "host/two_shot",
}
