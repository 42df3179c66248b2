"""A small public vocabulary for the tests; a token's index is its id."""

TOY_VOCAB = """
[PAD] [UNK] [CLS] [SEP] [MASK] the a cat sat on mat ##s ##ing run ##n cafe café . , ? ! [ ] mask
sep # $ - 中 国 人 ##人 한 ##국 hello ##hello é istanbul strasse straße note ##book notebook Cat ##e
😀 _ ' un ##aff ##able b ##b 1 ##2 12 ##3 fine e i ab ก ##ก
""".split()
