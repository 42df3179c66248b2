module {
  tt.func public @norm_forward(%x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %y: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %gamma: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %beta: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %z: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %means: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %slopes: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %hidden = arith.constant $hidden : i32
    %epsilon = arith.constant $epsilon : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c2_i32 = arith.constant 2 : i32
    %cst = arith.constant dense<569420461> : tensor<512xi32>
    %cst_0 = arith.constant dense<15> : tensor<512xi32>
    %cst_1 = arith.constant dense<-749064809> : tensor<512xi32>
    %cst_2 = arith.constant dense<16> : tensor<512xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<512x$float>
    %cst_4 = arith.constant 1.000000e+00 : f32
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<512xf32>
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
    %12 = tt.load %11, %2, %cst_3 : tensor<512x!tt.ptr<$float>>
    %13 = arith.extf %12 : tensor<512x$float> to tensor<512xf32>
    %14 = tt.splat %bias : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %15 = tt.addptr %14, %0 : tensor<512x!tt.ptr<$float>>, tensor<512xi32>
    %16 = tt.load %15, %2, %cst_3 : tensor<512x!tt.ptr<$float>>
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
    %49 = arith.shrui %48, %c16_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c569420461_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.muli %53, %c-749064809_i32 : i32
    %55 = arith.shrui %54, %c15_i32 : i32
    %56 = arith.xori %54, %55 : i32
    %57 = arith.addi %38, %c2_i32 : i32
    %58 = arith.shrui %57, %c16_i32 : i32
    %59 = arith.xori %57, %58 : i32
    %60 = arith.muli %59, %c569420461_i32 : i32
    %61 = arith.shrui %60, %c15_i32 : i32
    %62 = arith.xori %60, %61 : i32
    %63 = arith.muli %62, %c-749064809_i32 : i32
    %64 = arith.shrui %63, %c15_i32 : i32
    %65 = arith.xori %63, %64 : i32
    %66 = tt.splat %65 : i32 -> tensor<512xi32>
    %67 = arith.addi %0, %66 : tensor<512xi32>
    %68 = arith.shrui %67, %cst_2 : tensor<512xi32>
    %69 = arith.xori %67, %68 : tensor<512xi32>
    %70 = arith.muli %69, %cst : tensor<512xi32>
    %71 = arith.shrui %70, %cst_0 : tensor<512xi32>
    %72 = arith.xori %70, %71 : tensor<512xi32>
    %73 = arith.muli %72, %cst_1 : tensor<512xi32>
    %74 = arith.shrui %73, %cst_0 : tensor<512xi32>
    %75 = arith.xori %73, %74 : tensor<512xi32>
    %76 = tt.splat %56 : i32 -> tensor<512xi32>
    %77 = arith.xori %76, %75 : tensor<512xi32>
    %78 = arith.muli %77, %cst : tensor<512xi32>
    %79 = arith.shrui %78, %cst_0 : tensor<512xi32>
    %80 = arith.xori %78, %79 : tensor<512xi32>
    %81 = arith.muli %80, %cst_1 : tensor<512xi32>
    %82 = tt.splat %threshold : i32 -> tensor<512xi32>
    %83 = arith.cmpi uge, %81, %82 : tensor<512xi32>
    %84 = tt.splat %factor : f32 -> tensor<512xf32>
    %85 = arith.mulf %18, %84 : tensor<512xf32>
    %86 = arith.select %83, %85, %cst_5 : tensor<512xi1>, tensor<512xf32>
    %87 = tt.splat %x : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %88 = tt.addptr %87, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %89 = tt.load %88, %2, %cst_3 : tensor<512x!tt.ptr<$float>>
    %90 = arith.extf %89 : tensor<512x$float> to tensor<512xf32>
    %91 = arith.addf %86, %90 : tensor<512xf32>
    %92 = arith.truncf %91 : tensor<512xf32> to tensor<512x$float>
    %93 = tt.splat %z : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %94 = tt.addptr %93, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    tt.store %94, %92, %2 : tensor<512x!tt.ptr<$float>>
    %95 = arith.extf %92 : tensor<512x$float> to tensor<512xf32>
    %96 = "tt.reduce"(%95) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %123 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %123 : f32
    }) : (tensor<512xf32>) -> f32
    %97 = arith.sitofp %hidden : i32 to f32
    %98 = arith.divf %96, %97 : f32
    %99 = tt.splat %98 : f32 -> tensor<512xf32>
    %100 = arith.subf %95, %99 : tensor<512xf32>
    %101 = arith.select %2, %100, %cst_5 : tensor<512xi1>, tensor<512xf32>
    %102 = arith.mulf %101, %101 : tensor<512xf32>
    %103 = "tt.reduce"(%102) <{axis = 0 : i32}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %123 = arith.addf %arg14, %arg15 : f32
      tt.reduce.return %123 : f32
    }) : (tensor<512xf32>) -> f32
    %104 = arith.divf %103, %97 : f32
    %105 = arith.addf %104, %epsilon : f32
    %106 = tt.precise_sqrt %105 : f32
    %107 = arith.divf %cst_4, %106 : f32
    %108 = tt.splat %107 : f32 -> tensor<512xf32>
    %109 = arith.mulf %101, %108 : tensor<512xf32>
    %110 = tt.splat %gamma : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %111 = tt.addptr %110, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %112 = tt.load %111, %2, %cst_5 : tensor<512x!tt.ptr<f32>>
    %113 = arith.mulf %109, %112 : tensor<512xf32>
    %114 = tt.splat %beta : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %115 = tt.addptr %114, %0 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %116 = tt.load %115, %2, %cst_5 : tensor<512x!tt.ptr<f32>>
    %117 = arith.addf %113, %116 : tensor<512xf32>
    %118 = tt.splat %out : !tt.ptr<$float> -> tensor<512x!tt.ptr<$float>>
    %119 = tt.addptr %118, %9 : tensor<512x!tt.ptr<$float>>, tensor<512xi64>
    %120 = arith.truncf %117 : tensor<512xf32> to tensor<512x$float>
    tt.store %119, %120, %2 : tensor<512x!tt.ptr<$float>>
    %121 = tt.addptr %means, %3 : !tt.ptr<f32>, i32
    tt.store %121, %98 : !tt.ptr<f32>
    %122 = tt.addptr %slopes, %3 : !tt.ptr<f32>, i32
    tt.store %122, %107 : !tt.ptr<f32>
    tt.return
  }
}
