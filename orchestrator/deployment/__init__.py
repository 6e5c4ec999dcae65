"""Getting Rove onto nodes: what each needs, packed here and unpacked there, without internet."""
