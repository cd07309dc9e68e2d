"""What must hold of graphs, programs and streams before they are compiled."""
