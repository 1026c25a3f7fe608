

def cluster(size: int, devices: int = 1) -> list[dict[str, str]]:
    """The environments of a job of `size` workers on free ports of this machine."""
    sockets = [socket.socket() for _ in range(size)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    hosts = [f"127.0.0.1:{opened.getsockname()[1]}" for opened in sockets]
    for opened in sockets:
        opened.close()
    roles = {"chief": hosts[:1], "worker": hosts[1:]}
    tasks = [{"type": "chief", "index": 0}, *({"type": "worker", "index": i} for i in range(size - 1))]
    stand_in = {"TRAINYARD_STAND_IN": f"gpu:{devices}"} if devices > 1 else {}
    return [{"TF_CONFIG": json.dumps({"cluster": roles, "task": task})} | stand_in for task in tasks]
