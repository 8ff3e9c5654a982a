"""The loading of topologies and of PlanetLab traces into the embedded cloud."""
