"""The update: one optimizer around any other, which acts on the gradient of the whole batch; and the learning rate."""
