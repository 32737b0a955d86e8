//! The phases of a run.

words! {
    /// A phase of a workload, in order.
    #[derive(Default)]
    Phase {
        /// The target is set up, clients mount, files are made and opened.
        #[default]
        SetUp = "set-up",
        /// Filesets are made.
        Prepare = "prepare",
        WarmUp = "warm-up",
        Measure = "measure",
        /// Written data are read back and checked.
        Verify = "verify",
        /// Files are closed and removed, clients unmount.
        TearDown = "tear-down",
    }
}
