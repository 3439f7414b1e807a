"""Does the benchmark itself tell the truth? Its encoders, its reference and its judgement, each against known values."""
