module {
  tt.func public @norm_forward(%x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %y: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %gamma: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %beta: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %z: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %means: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %slopes: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %hidden = arith.constant $hidden : i32
    %epsilon = arith.constant $epsilon : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c2_i32 = arith.constant 2 : i32
    %cst = arith.constant dense<15> : tensor<512xi32>
    %cst_0 = arith.constant dense<569420461> : tensor<512xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<512x$float>
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<512xf32>
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
    %12 = tt.load %11, %2, %cst_1 : tensor<512x!tt.ptr<$float>>
    %13 = arith.extf %12 : tensor<512x$float> to tensor<512xf32>
    %14 = tt.splat %bias : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %15 = tt.addptr %14, %0 : tensor<512x!tt.ptr<$float>>, tensor<512xi32>
    %16 = tt.load %15, %2, %cst_1 : tensor<512x!tt.ptr<$float>>
    %17 = arith.extf %16 : tensor<512x$float> to tensor<512xf32>
    %18 = arith.addf %13, %17 : tensor<512xf32>
    %19 = tt.load %seed : !tt.ptr<i32>
    %20 = arith.shrui %19, %c16_i32 : i32
    %21 = arith.xori %19, %20 : i32
    %22 = arith.muli %21, %c569420461_i32 : i32
    %23 = arith.shrui %22, %c15_i32 : i32
    %24 = arith.xori %22, %23 : i32
    %25 = arith.muli %24, %c-749064809_i32 : i32
    %26 = arith.shrui %25, %c15_i32 : i32
    %27 = arith.xori %25, %26 : i32
    %28 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %29 = tt.load %28 : !tt.ptr<i32>
    %30 = arith.addi %27, %29 : i32
    %31 = arith.shrui %30, %c16_i32 : i32
    %32 = arith.xori %30, %31 : i32
    %33 = arith.muli %32, %c569420461_i32 : i32
    %34 = arith.shrui %33, %c15_i32 : i32
    %35 = arith.xori %33, %34 : i32
    %36 = arith.muli %35, %c-749064809_i32 : i32
    %37 = arith.shrui %36, %c15_i32 : i32
    %38 = arith.xori %36, %37 : i32
    %39 = arith.addi %38, %c1_i32 : i32
    %40 = arith.shrui %39, %c16_i32 : i32
    %41 = arith.xori %39, %40 : i32
    %42 = arith.muli %41, %c569420461_i32 : i32
    %43 = arith.shrui %42, %c15_i32 : i32
    %44 = arith.xori %42, %43 : i32
    %45 = arith.muli %44, %c-749064809_i32 : i32
    %46 = arith.shrui %45, %c15_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.addi %3, %47 : i32
    %49 = arith.muli %48, %c569420461_i32 : i32
    %50 = arith.shrui %49, %c15_i32 : i32
    %51 = arith.xori %49, %50 : i32
    %52 = arith.ori %51, %c1_i32 : i32
    %53 = arith.addi %38, %c2_i32 : i32
    %54 = arith.shrui %53, %c16_i32 : i32
    %55 = arith.xori %53, %54 : i32
    %56 = arith.muli %55, %c569420461_i32 : i32
    %57 = arith.shrui %56, %c15_i32 : i32
    %58 = arith.xori %56, %57 : i32
    %59 = arith.muli %58, %c-749064809_i32 : i32
    %60 = arith.shrui %59, %c15_i32 : i32
    %61 = arith.xori %59, %60 : i32
    %62 = tt.splat %61 : i32 -> tensor<512xi32>
    %63 = arith.addi %0, %62 : tensor<512xi32>
    %64 = arith.muli %63, %cst_0 : tensor<512xi32>
    %65 = arith.shrui %64, %cst : tensor<512xi32>
    %66 = arith.xori %64, %65 : tensor<512xi32>
    %67 = tt.splat %52 : i32 -> tensor<512xi32>
    %68 = arith.muli %67, %66 : tensor<512xi32>
    %69 = tt.splat %threshold : i32 -> tensor<512xi32>
    %70 = arith.cmpi uge, %68, %69 : tensor<512xi32>
    %71 = tt.splat %factor : f32 -> tensor<512xf32>
    %72 = arith.mulf %18, %71 : tensor<512xf32>
    %73 = arith.select %70, %72, %cst_3 : tensor<512xi1>, tensor<512xf32>
    %74 = tt.splat %x : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %75 = tt.addptr %74, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %76 = tt.load %75, %2, %cst_1 : tensor<512x!tt.ptr<$float>>
    %77 = arith.extf %76 : tensor<512x$float> to tensor<512xf32>
    %78 = arith.addf %73, %77 : tensor<512xf32>
    %79 = arith.truncf %78 : tensor<512xf32> to tensor<512x$float>
    %80 = tt.splat %z : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %81 = tt.addptr %80, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    tt.store %81, %79, %2 : tensor<512x!tt.ptr<$float>>
    %82 = arith.extf %79 : tensor<512x$float> to tensor<512xf32>
    %83 = "tt.reduce"(%82) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %110 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %110 : f32
    }) : (tensor<512xf32>) -> f32
    %84 = arith.sitofp %hidden : i32 to f32
    %85 = arith.divf %83, %84 : f32
    %86 = tt.splat %85 : f32 -> tensor<512xf32>
    %87 = arith.subf %82, %86 : tensor<512xf32>
    %88 = arith.select %2, %87, %cst_3 : tensor<512xi1>, tensor<512xf32>
    %89 = arith.mulf %88, %88 : tensor<512xf32>
    %90 = "tt.reduce"(%89) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %110 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %110 : f32
    }) : (tensor<512xf32>) -> f32
    %91 = arith.divf %90, %84 : f32
    %92 = arith.addf %91, %epsilon : f32
    %93 = tt.precise_sqrt %92 : f32
    %94 = arith.divf %cst_2, %93 : f32
    %95 = tt.splat %94 : f32 -> tensor<512xf32>
    %96 = arith.mulf %88, %95 : tensor<512xf32>
    %97 = tt.splat %gamma : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %98 = tt.addptr %97, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %99 = tt.load %98, %2, %cst_3 : tensor<512x!tt.ptr<f32>>
    %100 = arith.mulf %96, %99 : tensor<512xf32>
    %101 = tt.splat %beta : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %102 = tt.addptr %101, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %103 = tt.load %102, %2, %cst_3 : tensor<512x!tt.ptr<f32>>
    %104 = arith.addf %100, %103 : tensor<512xf32>
    %105 = tt.splat %out : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %106 = tt.addptr %105, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %107 = arith.truncf %104 : tensor<512xf32> to tensor<512x$float>
    tt.store %106, %107, %2 : tensor<512x!tt.ptr<$float>>
    %108 = tt.addptr %means, %3 : !tt.ptr<f32>, i32
    tt.store %108, %85 : !tt.ptr<f32>
    %109 = tt.addptr %slopes, %3 : !tt.ptr<f32>, i32
    tt.store %109, %94 : !tt.ptr<f32>
    tt.return
  }
}
