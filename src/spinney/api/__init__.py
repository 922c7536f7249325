"""Wire types, one module per API group; CRDs are generated from them."""
