"""What those parts of the site share that speak as other services do, at paths of their own, to their clients."""
