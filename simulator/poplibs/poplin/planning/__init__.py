"""How a convolution is divided over the tiles: forms, splits, costs, the cheapest plan."""
