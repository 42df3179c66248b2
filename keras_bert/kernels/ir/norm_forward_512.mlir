module {
  tt.func public @norm_forward(%x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %y: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %gamma: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %beta: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %z: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %means: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %slopes: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %hidden = arith.constant $hidden : i32
    %epsilon = arith.constant $epsilon : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<0.000000e+00> : tensor<512x$float>
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<512xf32>
    %0 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %1 = tt.splat %hidden : i32 -> tensor<512xi32>
    %2 = arith.cmpi slt, %0, %1 : tensor<512xi32>
    %3 = tt.get_program_id x : i32
    %4 = arith.extsi %3 : i32 to i64
    %5 = arith.extsi %hidden : i32 to i64
    %6 = arith.muli %4, %5 : i64
    %7 = arith.extsi %0 : tensor<512xi32> to tensor<512xi64>
    %8 = tt.splat %6 : i64 -> tensor<512xi64>
    %9 = arith.addi %8, %7 : tensor<512xi64>
    %10 = tt.splat %y : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %11 = tt.addptr %10, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %12 = tt.load %11, %2, %cst : tensor<512x!tt.ptr<$float>>
    %13 = arith.extf %12 : tensor<512x$float> to tensor<512xf32>
    %14 = tt.splat %bias : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %15 = tt.addptr %14, %0 : tensor<512x!tt.ptr<$float>>, tensor<512xi32>
    %16 = tt.load %15, %2, %cst : tensor<512x!tt.ptr<$float>>
    %17 = arith.extf %16 : tensor<512x$float> to tensor<512xf32>
    %18 = arith.addf %13, %17 : tensor<512xf32>
    %19 = tt.splat %x : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %20 = tt.addptr %19, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %21 = tt.load %20, %2, %cst : tensor<512x!tt.ptr<$float>>
    %22 = arith.extf %21 : tensor<512x$float> to tensor<512xf32>
    %23 = arith.addf %18, %22 : tensor<512xf32>
    %24 = arith.truncf %23 : tensor<512xf32> to tensor<512x$float>
    %25 = tt.splat %z : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %26 = tt.addptr %25, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    tt.store %26, %24, %2 : tensor<512x!tt.ptr<$float>>
    %27 = arith.extf %24 : tensor<512x$float> to tensor<512xf32>
    %28 = "tt.reduce"(%27) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %55 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %55 : f32
    }) : (tensor<512xf32>) -> f32
    %29 = arith.sitofp %hidden : i32 to f32
    %30 = arith.divf %28, %29 : f32
    %31 = tt.splat %30 : f32 -> tensor<512xf32>
    %32 = arith.subf %27, %31 : tensor<512xf32>
    %33 = arith.select %2, %32, %cst_1 : tensor<512xi1>, tensor<512xf32>
    %34 = arith.mulf %33, %33 : tensor<512xf32>
    %35 = "tt.reduce"(%34) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %55 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %55 : f32
    }) : (tensor<512xf32>) -> f32
    %36 = arith.divf %35, %29 : f32
    %37 = arith.addf %36, %epsilon : f32
    %38 = tt.precise_sqrt %37 : f32
    %39 = arith.divf %cst_0, %38 : f32
    %40 = tt.splat %39 : f32 -> tensor<512xf32>
    %41 = arith.mulf %33, %40 : tensor<512xf32>
    %42 = tt.splat %gamma : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %43 = tt.addptr %42, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %44 = tt.load %43, %2, %cst_1 : tensor<512x!tt.ptr<f32>>
    %45 = arith.mulf %41, %44 : tensor<512xf32>
    %46 = tt.splat %beta : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %47 = tt.addptr %46, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %48 = tt.load %47, %2, %cst_1 : tensor<512x!tt.ptr<f32>>
    %49 = arith.addf %45, %48 : tensor<512xf32>
    %50 = tt.splat %out : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %51 = tt.addptr %50, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %52 = arith.truncf %49 : tensor<512xf32> to tensor<512x$float>
    tt.store %51, %52, %2 : tensor<512x!tt.ptr<$float>>
    %53 = tt.addptr %means, %3 : !tt.ptr<f32>, i32
    tt.store %53, %30 : !tt.ptr<f32>
    %54 = tt.addptr %slopes, %3 : !tt.ptr<f32>, i32
    tt.store %54, %39 : !tt.ptr<f32>
    tt.return
  }
}
