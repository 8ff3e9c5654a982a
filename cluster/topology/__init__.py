"""Loading of topology files and PlanetLab traces into the embedded cloud."""
