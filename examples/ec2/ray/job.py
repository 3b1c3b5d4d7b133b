"""Eighty tasks on the workers of a Ray cluster; those of a worker that is lost run again on another one."""
import time

import ray


@ray.remote(max_retries=5)
def square(number):
    time.sleep(0.75)
    return number * number, ray.util.get_node_ip_address()


def workers():
    """How many nodes there are beside the head."""
    return sum(node["Alive"] for node in ray.nodes()) - 1


ray.init(address="auto", log_to_driver=False)
while workers() < 2:
    time.sleep(0.5)
print("the workers are there", flush=True)
waiting, total, seen, is_lost = [square.remote(number) for number in range(1, 81)], 0, set(), False
while waiting:
    done, waiting = ray.wait(waiting, timeout=1)
    for number, worker in ray.get(done):
        total += number
        if worker not in seen:
            print(f"the first task of {worker} is done", flush=True)
        seen.add(worker)
    if workers() < 2 and waiting and not is_lost:
        is_lost = True
        print("a worker is lost, and not all tasks are done", flush=True)
print(f"the sum is {total}, by {len(seen)} workers", flush=True)
