"""The package that the driver imports under the name of CORE's own."""
