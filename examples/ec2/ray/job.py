"""Sixty tasks on the workers of a Ray cluster; those of a worker that is lost run again on another one."""
import time

import ray


@ray.remote(max_retries=5)
def square(number):
    time.sleep(0.5)
    return number * number, ray.util.get_node_ip_address()


ray.init(address="auto", log_to_driver=False)
while len([node for node in ray.nodes() if node["Alive"]]) < 3:
    time.sleep(0.5)
print("the workers are there", flush=True)
waiting, total, workers = [square.remote(number) for number in range(1, 61)], 0, set()
while waiting:
    done, waiting = ray.wait(waiting)
    for number, worker in ray.get(done):
        total += number
        if worker not in workers:
            print(f"the first task of {worker} is done", flush=True)
        workers.add(worker)
print(f"the sum is {total}, by {len(workers)} workers, {len([n for n in ray.nodes() if n['Alive']]) - 1} of them left", flush=True)
