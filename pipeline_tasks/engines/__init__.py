"""Where kernels run: `local` is the reference, `spark` and `ray` give the same rows."""
