#!/bin/bash
# Trains on four machines, one worker on each with all of its GPUs: sbatch recipes/slurm.sh
# train.py makes its model under keras_bert.training.strategy("multiworker"), which reads the
# variables of SLURM, and passes Resume on a folder that all machines share to `fit`.
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --distribution=block
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --requeue
#SBATCH --open-mode=append

# If a worker dies, the others end with an error, and --kill-on-bad-exit ends the step: start it again.
# A machine that fails takes the job with it; --requeue puts that back into the queue.
for attempt in $(seq 100); do
    srun --kill-on-bad-exit=1 python train.py --folder /shared/run && exit 0
    echo "attempt $attempt ended with an error" >&2
    sleep 10
done
exit 1
