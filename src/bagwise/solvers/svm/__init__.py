"""Support vector machines: duals on Gram matrices, linear machines, Newton steps, the 1-norm."""
